import io
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, event, func, insert, select, update

from chalicelib.catalog.ridb import ExportError
from chalicelib.catalog.search import search as find
from chalicelib.catalog.sync import BATCH, PROVIDER, SyncResult, sync
from chalicelib.db.engine import Database
from chalicelib.db.tables import campgrounds, providers, recreation_areas, search, unique_targets
from tests.catalog.exports import address, area, area_address, export, facility

NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)

SAMPLES = Path(__file__).parents[3] / "shared" / "recorded" / "derived" / "ridb_full_export"


def a_catalogue(*, kind: str = "json") -> io.BytesIO:
    """Two campgrounds in Yosemite, one nowhere."""
    return export(
        [
            facility("100", "UPPER PINES", ParentRecAreaID="1"),
            facility("101", "Camp 4", ParentRecAreaID="1", Reservable=False),
            facility("102", "Lost Creek", ParentRecAreaID="999"),
        ],
        [address("100", "CA")],
        [area("1")],
        [area_address("1", "California")],
        kind=kind,
    )


def rows(database: Database) -> dict[str, list[dict[str, Any]]]:
    """The whole catalogue but for its timestamps."""
    found: dict[str, list[dict[str, Any]]] = {}
    with database.reading() as connection:
        for table in (providers, recreation_areas, campgrounds, search):
            columns = [column for column in table.c if column.name != "updated_at"]
            statement = select(*columns).order_by(*table.primary_key.columns)
            found[table.name] = [dict(row) for row in connection.execute(statement).mappings()]
    return found


def names(database: Database, text: str) -> list[str]:
    return [found.name for found in find(database, text)]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_an_export_becomes_the_catalogue(database: Database, kind: str) -> None:
    result = sync(database, a_catalogue(kind=kind), NOW)
    assert result == SyncResult(
        recreation_areas=1,
        campgrounds=3,
        reservable=2,
        without_recreation_area=1,
        without_state=1,
        without_name=0,
        gone=0,
        oddities={},
    )
    found = rows(database)
    assert found["providers"] == [{"id": "recreation_gov", "name": "Recreation.gov"}]
    assert found["recreation_areas"] == [
        {
            "provider": "recreation_gov",
            "recreation_area_id": "1",
            "name": "Yosemite National Park",
            "state": "CA",
            "latitude": None,
            "longitude": None,
        }
    ]
    assert found["campgrounds"][0] == {
        "provider": "recreation_gov",
        "campground_id": "100",
        "name": "Upper Pines",
        "recreation_area_id": "1",
        "state": "CA",
        "time_zone": None,
        "latitude": 37.7,
        "longitude": -119.5,
        "reservable": True,
        "enabled": True,
        "campsites_fetched_at": None,
        "campsites_tried_at": None,
    }
    assert [row["recreation_area_id"] for row in found["campgrounds"]] == ["1", "1", "999"]
    assert names(database, "yosemite") == ["Yosemite National Park", "Upper Pines", "Camp 4"]
    assert names(database, "lost creek") == ["Lost Creek"]


def test_a_second_run_changes_nothing_but_timestamps(database: Database) -> None:
    sync(database, a_catalogue(), NOW)
    before = rows(database)
    assert sync(database, a_catalogue(), LATER).gone == 0
    assert rows(database) == before
    with database.reading() as connection:
        assert set(connection.execute(select(campgrounds.c.updated_at)).scalars()) == {LATER}


def test_changes_are_taken_over(database: Database) -> None:
    sync(database, a_catalogue(), NOW)
    sync(database, export([facility("100", "Upper Meadow", Reservable=False)]), LATER)
    assert names(database, "upper") == ["Upper Meadow"]
    with database.reading() as connection:
        row = connection.execute(select(campgrounds).where(campgrounds.c.campground_id == "100")).one()
    assert (row.name, row.reservable, row.state) == ("Upper Meadow", False, None)


def test_what_left_the_export_is_kept_but_out_of_sight(database: Database) -> None:
    sync(database, a_catalogue(), NOW)
    with database.transaction() as connection:
        follow(connection, "102")
    result = sync(database, export([facility("100", "Upper Pines")]), LATER)
    assert result.gone == 2
    with database.reading() as connection:
        enabled = {row.campground_id: row.enabled for row in connection.execute(select(campgrounds))}
    assert enabled == {"100": True, "101": False, "102": False}
    assert [row["entity_id"] for row in rows(database)["search"]] == ["100"]

    assert sync(database, export([facility("100", "Upper Pines")]), LATER).gone == 0

    sync(database, a_catalogue(), LATER)
    assert names(database, "lost creek") == ["Lost Creek"]
    assert all(row["enabled"] for row in rows(database)["campgrounds"])


def test_a_campground_that_its_provider_disabled_is_gone(database: Database) -> None:
    sync(database, a_catalogue(), NOW)
    result = sync(database, export([facility("100"), facility("101", Enabled=False), facility("102")]), LATER)
    assert result.gone == 1


def test_what_was_learned_on_demand_stays(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(insert(providers), {"id": PROVIDER, "name": "Recreation.gov"})
        learned = {"provider": PROVIDER, "time_zone": "America/Denver", "updated_at": NOW}
        connection.execute(insert(campgrounds), {**learned, "campground_id": "100", "name": "Told Before"})
        connection.execute(insert(campgrounds), {**learned, "campground_id": "777", "name": "Not In RIDB"})
    result = sync(database, export([facility("100", "", FacilityLatitude=0)]), LATER)
    assert (result.without_name, result.gone) == (1, 0)
    found = {row["campground_id"]: row for row in rows(database)["campgrounds"]}
    assert (found["100"]["name"], found["100"]["time_zone"]) == ("Told Before", "America/Denver")
    assert found["777"]["enabled"]
    assert names(database, "told") == ["Told Before"]


def test_other_providers_are_left_alone(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(insert(providers), {"id": "elsewhere", "name": "Elsewhere"})
        connection.execute(
            insert(campgrounds),
            {"provider": "elsewhere", "campground_id": "100", "name": "Far", "reservable": True, "updated_at": NOW},
        )
    assert sync(database, a_catalogue(), LATER).gone == 0
    sync(database, export([facility("1")]), LATER)
    found = [row for row in rows(database)["campgrounds"] if row["provider"] == "elsewhere"]
    assert [(row["name"], row["enabled"]) for row in found] == [("Far", True)]


@pytest.mark.parametrize("content", [b"", b"<html>", export().getvalue(), a_catalogue().getvalue()[:-30]])
def test_an_unusable_export_changes_nothing(database: Database, content: bytes) -> None:
    sync(database, a_catalogue(), NOW)
    with database.transaction() as connection:  # something that a sync would mend
        connection.execute(update(campgrounds).values(name="As It Was"))
    before = rows(database)
    with pytest.raises(ExportError):
        sync(database, io.BytesIO(content), LATER)
    assert rows(database) == before


class Killed(BaseException):
    """Stands in for the end of the process."""


@contextmanager
def killed_at_commit(database: Database, number: int) -> Generator[None]:
    commits = 0

    def count(_: Connection) -> None:
        nonlocal commits
        commits += 1
        if commits == number:
            raise Killed

    event.listen(database.engine, "commit", count)
    try:
        yield
    finally:
        event.remove(database.engine, "commit", count)


def many(count: int, name: str) -> io.BytesIO:
    return export(
        [facility(f"{number:06}", f"{name} {number}", ParentRecAreaID="1") for number in range(count)],
        areas=[area("1")],
    )


@pytest.mark.parametrize("commit", [2, 3, 5, 7])
def test_interrupted_anywhere_the_catalogue_is_usable_and_the_next_run_completes_it(
    database: Database, commit: int
) -> None:
    count = 2 * BATCH + 1
    sync(database, many(count + 1, "Old"), NOW)
    with suppress(Killed), killed_at_commit(database, commit):
        sync(database, many(count, "New"), LATER)
    assert names(database, "yosemite national park")
    with database.reading() as connection:
        known = connection.execute(
            select(campgrounds.c.name, search.c.name.label("shown"))
            .join_from(campgrounds, search, search.c.entity_id == campgrounds.c.campground_id)
            .where(search.c.kind == "campground")
        ).all()
    assert all(row.name == row.shown for row in known)
    assert count <= len(known) <= count + 1

    sync(database, many(count, "New"), LATER)
    assert len(names(database, "new 1000")) == 1
    assert names(database, "old") == []


def test_rows_go_in_few_statements(database: Database) -> None:
    statements = 0

    def note(*args: Any) -> None:
        nonlocal statements
        statements += not args[2].startswith("BEGIN")

    export = many(3 * BATCH, "New")
    event.listen(database.engine, "before_cursor_execute", note)
    sync(database, export, NOW)
    assert statements < 15
    with database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(campgrounds)).scalar_one() == 3 * BATCH


def test_progress_goes_up_to_the_whole(database: Database) -> None:
    told: list[tuple[int, int]] = []
    sync(database, many(3 * BATCH, "New"), NOW, lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert {total for _, total in told} == {1000}
    assert told[-1] == (1000, 1000)


def follow(connection: Connection, campground_id: str) -> None:
    connection.execute(
        insert(unique_targets),
        {
            "id": uuid4(),
            "provider": PROVIDER,
            "campground_id": campground_id,
            "start_date": NOW.date(),
            "end_date": LATER.date(),
            "created_at": NOW,
        },
    )


# --- the recorded samples --------------------------------------------------------------------------------------------

needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recorded exports are not beside this repository")


@needs_samples
@pytest.mark.parametrize("name", ["JSON", "CSV"])
def test_the_sample_loses_no_campground(database: Database, name: str) -> None:
    result = sync(database, SAMPLES / f"RIDBFullExport_V1_{name}.sample.zip", NOW)
    assert result == SyncResult(
        recreation_areas=26,
        campgrounds=67,
        reservable=65,
        without_recreation_area=7,
        without_state=1,
        without_name=0,
        gone=0,
        oddities={},
    )
    assert len(rows(database)["campgrounds"]) == 67
    assert len(rows(database)["search"]) == 67 + 26
    assert names(database, "YOSEMITE pines upper") == ["Upper Pines Campground"]
    assert names(database, "haleakala")[0] == "Haleakal\N{LATIN SMALL LETTER A WITH MACRON} National Park"


@needs_samples
def test_both_formats_of_the_sample_give_the_same_catalogue(database: Database) -> None:
    sync(database, SAMPLES / "RIDBFullExport_V1_JSON.sample.zip", NOW)
    before = rows(database)
    sync(database, SAMPLES / "RIDBFullExport_V1_CSV.sample.zip", NOW)
    assert rows(database) == before
