"""Looks a campground up: in the catalogue, else at its provider, so that a scan needs no catalogue sync."""

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import and_, func, select

from chalicelib.catalog.search import make_findable
from chalicelib.db.engine import Database
from chalicelib.db.tables import campgrounds, provider_states, providers, recreation_areas
from chalicelib.errors import NotFound
from chalicelib.providers.contract import CampgroundRecord, CheckError, Provider, ProviderError, ProviderInfo
from chalicelib.stays.names import plain_text, tidy_name

LONGEST_ID = 64


class CampgroundNotFound(NotFound):
    def __init__(self, campground_id: str) -> None:
        super().__init__("campground", campground_id)


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalogue knows of a campground; None is unknown.

    `enabled` is False for one that has left its provider's catalogue. `trouble` says why the provider could not be
    asked for the name, which then comes later: with the campsite metadata of the first checks.
    """

    provider: str
    campground_id: str
    name: str | None
    recreation_area_id: str | None
    recreation_area: str | None
    state: str | None
    time_zone: str | None
    latitude: float | None
    longitude: float | None
    reservable: bool | None
    enabled: bool
    trouble: CheckError | None = None


def find_or_look_up(database: Database, provider: Provider, campground_id: str, now: datetime) -> Known:
    """Make sure that the catalogue has a row of the campground, and say what it knows.

    1. The catalogue knows its name: done.
    2. Ask the provider, outside any transaction, unless its breaker is open.
    3. Keep the answer; or, where there was trouble, a row without a name.

    Raises CampgroundNotFound where the provider has no such campground; nothing is kept then.
    """
    if not _possible(campground_id):
        raise CampgroundNotFound(campground_id)
    info = provider.info
    known = find(database, info.id, campground_id)
    if known and known.name:
        return known
    try:
        _stop_if_left_alone(database, info.id, now)
        record = provider.campground(campground_id)
        trouble = None
    except ProviderError as error:
        if error.category is CheckError.NOT_FOUND:
            raise CampgroundNotFound(campground_id) from error
        record = CampgroundRecord(campground_id, "")
        trouble = error.category
    _keep(database, info, campground_id, record, now)
    known = find(database, info.id, campground_id)
    if known is None:
        raise CampgroundNotFound(campground_id)
    return replace(known, trouble=None if known.name else trouble)


def find(database: Database, provider_id: str, campground_id: str) -> Known | None:
    """What the catalogue knows of a campground, without asking anybody."""
    statement = (
        select(
            *campgrounds.c[
                "provider",
                "campground_id",
                "name",
                "recreation_area_id",
                "state",
                "time_zone",
                "latitude",
                "longitude",
                "reservable",
                "enabled",
            ],
            recreation_areas.c.name.label("recreation_area"),
        )
        .outerjoin(
            recreation_areas,
            and_(
                recreation_areas.c.provider == campgrounds.c.provider,
                recreation_areas.c.recreation_area_id == campgrounds.c.recreation_area_id,
            ),
        )
        .where(campgrounds.c.provider == provider_id, campgrounds.c.campground_id == campground_id)
    )
    with database.reading() as connection:
        row = connection.execute(statement).mappings().one_or_none()
    return Known(**row) if row else None


def _possible(campground_id: str) -> bool:
    return 0 < len(campground_id) <= LONGEST_ID and plain_text(campground_id) == campground_id


def _stop_if_left_alone(database: Database, provider_id: str, now: datetime) -> None:
    """Raise what opened the provider's breaker, while it is open or one request is finding out whether it may close."""
    states = provider_states.c
    statement = select(states.error_category).where(
        states.provider == provider_id, (states.open_until > now) | (states.probe_until > now)
    )
    with database.reading() as connection:
        row = connection.execute(statement).one_or_none()
    if row is not None:
        raise ProviderError(CheckError(row.error_category or CheckError.RATE_LIMITED))


def _keep(database: Database, info: ProviderInfo, campground_id: str, record: CampgroundRecord, now: datetime) -> None:
    """Add to the catalogue what the record tells; what it does not tell stays as it was."""
    name = tidy_name(record.name) or None
    told = {
        "name": name,
        "recreation_area_id": record.recreation_area_id if _possible(record.recreation_area_id or "") else None,
        "time_zone": record.time_zone,
        "latitude": record.latitude,
        "longitude": record.longitude,
    }
    row = {"provider": info.id, "campground_id": campground_id, **told, "updated_at": now}
    with database.transaction() as connection:
        connection.execute(database.upsert(providers).on_conflict_do_nothing(), {"id": info.id, "name": info.name})
        insert = database.upsert(campgrounds)
        if name is None:
            connection.execute(insert.on_conflict_do_nothing(), row)
            return
        added = {column: func.coalesce(insert.excluded[column], campgrounds.c[column]) for column in told}
        keys = [campgrounds.c.provider, campgrounds.c.campground_id]
        update = insert.on_conflict_do_update(index_elements=keys, set_={**added, "updated_at": now})
        connection.execute(update, row)
        make_findable(connection, info.id, campground_id)
