"""Brings the catalogue to the state of a RIDB full export, in short transactions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

from sqlalchemy import Connection, Row, Table, delete, func, select, update

from chalicelib.catalog.ridb import Campground, Export, Progress, RecreationArea, read
from chalicelib.catalog.search import (
    CAMPGROUND,
    RANK_RECREATION_AREA,
    RANK_RESERVABLE,
    RECREATION_AREA,
    Area,
    search_row,
)
from chalicelib.db.engine import Database
from chalicelib.db.tables import campgrounds, providers, recreation_areas, search

PROVIDER = "recreation_gov"  # whose campgrounds RIDB lists
PROVIDER_NAME = "Recreation.gov"

T = TypeVar("T")

HALF = 500  # thousandths
BATCH = 500  # rows a transaction, which takes a fraction of a second


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync found and did.

    `without_recreation_area` counts campgrounds that name none, or one that the export does not hold; `gone` those that
    have left the export since the last sync. `oddities` counts what could not be used, by a short fixed word.
    """

    recreation_areas: int
    campgrounds: int
    reservable: int
    without_recreation_area: int
    without_state: int
    without_name: int
    gone: int
    oddities: Mapping[str, int]


def sync(database: Database, source: Path | IO[bytes], now: datetime, progress: Progress | None = None) -> SyncResult:
    """Take over what the export at `source` holds. A second run with the same one changes nothing but timestamps.

    1. Read all of it: an export that cannot be used changes nothing.
    2. Write recreation areas, then campgrounds, each batch with its search rows in a transaction of its own.
       Interrupted anywhere, the catalogue is part new and part old, and usable.
    3. Campgrounds that have left the export stay for the scans that follow them, but no longer enabled, nor found by
       search. Those that were only ever looked up on demand are left alone.

    `progress` is told thousandths of the whole, of which reading is the first half. Raises ExportError.
    """
    tell = progress or _unseen
    export = read(source, lambda done, total: tell(HALF * done // total, 2 * HALF))
    known = _known(database)
    _add_provider(database)
    written, rows = 0, len(export.recreation_areas) + len(export.campgrounds)
    for areas in _batches(export.recreation_areas.values()):
        _write_recreation_areas(database, areas, export, now)
        written += len(areas)
        tell(HALF + HALF * written // rows, 2 * HALF)
    for batch in _batches(export.campgrounds.values()):
        _write_campgrounds(database, batch, export, known, now)
        written += len(batch)
        tell(HALF + HALF * written // rows, 2 * HALF)
    gone = _retire(database, export, known, now)
    return SyncResult(
        recreation_areas=len(export.recreation_areas),
        campgrounds=len(export.campgrounds),
        reservable=sum(campground.reservable is True for campground in export.campgrounds.values()),
        without_recreation_area=sum(
            campground.recreation_area_id not in export.recreation_areas for campground in export.campgrounds.values()
        ),
        without_state=sum(campground.state is None for campground in export.campgrounds.values()),
        without_name=sum(campground.name is None for campground in export.campgrounds.values()),
        gone=gone,
        oddities=export.oddities,
    )


def _known(database: Database) -> dict[str, Row[Any]]:
    """The campgrounds that the catalogue has, by id."""
    statement = select(
        *campgrounds.c["campground_id", "name", "recreation_area_id", "enabled", "reservable"],
    ).where(campgrounds.c.provider == PROVIDER)
    with database.reading() as connection:
        return {row.campground_id: row for row in connection.execute(statement)}


def _add_provider(database: Database) -> None:
    with database.transaction() as connection:
        insert = database.upsert(providers).values(id=PROVIDER, name=PROVIDER_NAME)
        connection.execute(insert.on_conflict_do_nothing())


def _write_recreation_areas(database: Database, areas: list[RecreationArea], export: Export, now: datetime) -> None:
    sizes = Counter(campground.recreation_area_id for campground in export.campgrounds.values())
    rows = [
        {
            "provider": PROVIDER,
            "recreation_area_id": area.id,
            "name": area.name,
            "state": area.state,
            "latitude": area.latitude,
            "longitude": area.longitude,
            "updated_at": now,
        }
        for area in areas
    ]
    found = [
        search_row(
            PROVIDER,
            RECREATION_AREA,
            area.id,
            area.name,
            state=area.state,
            rank=RANK_RECREATION_AREA + sizes[area.id],
        )
        for area in areas
    ]
    with database.transaction() as connection:
        _upsert(database, connection, recreation_areas, rows)
        _upsert(database, connection, search, found)


def _write_campgrounds(
    database: Database, batch: list[Campground], export: Export, known: Mapping[str, Row[Any]], now: datetime
) -> None:
    """What the export leaves blank stays as it was learned on demand."""
    rows = [
        {
            "provider": PROVIDER,
            "campground_id": campground.id,
            "name": campground.name,
            "recreation_area_id": campground.recreation_area_id,
            "state": campground.state,
            "latitude": campground.latitude,
            "longitude": campground.longitude,
            "reservable": campground.reservable,
            "enabled": True,
            "updated_at": now,
        }
        for campground in batch
    ]
    found = [row for campground in batch if (row := _search_row(campground, export, known.get(campground.id)))]
    learned = ("name", "recreation_area_id", "latitude", "longitude")
    with database.transaction() as connection:
        _upsert(database, connection, campgrounds, rows, keep=learned)
        _upsert(database, connection, search, found)


def _search_row(campground: Campground, export: Export, known: Row[Any] | None) -> dict[str, Any] | None:
    name = campground.name or (known.name if known else None)
    if not name:
        return None
    area_id: str | None = campground.recreation_area_id or (known.recreation_area_id if known else None)
    area = export.recreation_areas.get(area_id or "")
    return search_row(
        PROVIDER,
        CAMPGROUND,
        campground.id,
        name,
        state=campground.state,
        area=Area(area.name, area.state) if area else None,
        rank=RANK_RESERVABLE if campground.reservable else 0,
    )


def _retire(database: Database, export: Export, known: Mapping[str, Row[Any]], now: datetime) -> int:
    """Take what has left the export out of sight; say how many campgrounds that were.

    Only the export tells whether a campground is reservable, hence those of unknown reservability never were in it.
    """
    gone = [
        campground_id
        for campground_id, row in known.items()
        if row.enabled and row.reservable is not None and campground_id not in export.campgrounds
    ]
    for batch in _batches(gone):
        with database.transaction() as connection:
            connection.execute(
                update(campgrounds)
                .where(campgrounds.c.provider == PROVIDER, campgrounds.c.campground_id.in_(batch))
                .values(enabled=False, updated_at=now)
            )
            _hide(connection, CAMPGROUND, batch)
    with database.reading() as connection:
        shown = connection.execute(
            select(search.c.entity_id).where(search.c.provider == PROVIDER, search.c.kind == RECREATION_AREA)
        ).scalars()
        gone_areas = [area_id for area_id in shown if area_id not in export.recreation_areas]
    for batch in _batches(gone_areas):
        with database.transaction() as connection:
            _hide(connection, RECREATION_AREA, batch)
    return len(gone)


def _hide(connection: Connection, kind: str, ids: list[str]) -> None:
    this = (search.c.provider == PROVIDER) & (search.c.kind == kind)
    connection.execute(delete(search).where(this, search.c.entity_id.in_(ids)))


def _upsert(
    database: Database,
    connection: Connection,
    table: Table,
    rows: list[dict[str, Any]],
    keep: Iterable[str] = (),
) -> None:
    """Insert rows that are alike, or change those that are there; of the columns to keep, a null changes nothing.

    RETURNING is what makes SQLAlchemy send the rows in one statement. Without it an ON CONFLICT goes row by row, which
    under pg8000 takes ten times as long.
    """
    if not rows:
        return
    insert = database.upsert(table)
    keys = [column.name for column in table.primary_key]
    told = {name: insert.excluded[name] for name in rows[0] if name not in keys}
    kept = {name: func.coalesce(insert.excluded[name], table.c[name]) for name in keep}
    upsert = insert.on_conflict_do_update(index_elements=keys, set_=told | kept)
    connection.execute(upsert.returning(table.c[keys[-1]]), rows)


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _unseen(done: int, total: int) -> None:
    del done, total
