from datetime import UTC, date, datetime

from sqlalchemy import select

from chalicelib.db.scan_rows import filter_columns, filters_of, result_columns, result_of
from chalicelib.db.tables import scan_results, user_scans
from chalicelib.stays.campsites import Campsite, Equipment
from chalicelib.stays.filters import Filters
from chalicelib.stays.openings import Result
from tests.support.rows import add_scan, add_user, make_request
from tests.support.standins import World

EVERYTHING = Filters(
    min_stay_length=2,
    preferred_types=frozenset({"tent", "rv"}),
    require_electric=True,
    require_accessible=True,
    people=4,
    equipment="Trailer",
    equipment_length=24,
    loops_wanted=frozenset({"Loop B", "Loop A"}),
    loops_unwanted=frozenset({"Loop C"}),
    campsites_wanted=frozenset({"044"}),
    campsites_unwanted=frozenset({"045"}),
    arrival_weekdays=frozenset({6, 4}),
)


def test_filters_come_back_as_they_were_stored(world: World) -> None:
    scan_id = add_scan(world.deps, add_user(world.deps))
    with world.deps.database.transaction() as connection:
        assert filters_of(connection.execute(select(user_scans)).mappings().one()) == Filters()
        connection.execute(user_scans.update().values(**filter_columns(EVERYTHING)))
    with world.deps.database.reading() as connection:
        row = connection.execute(select(user_scans).where(user_scans.c.id == scan_id)).mappings().one()
    assert filters_of(row) == EVERYTHING


def test_lists_of_filters_are_stored_in_order() -> None:
    columns = filter_columns(EVERYTHING)
    assert columns["arrival_weekdays"] == [4, 6]
    assert columns["loops_wanted"] == ["Loop A", "Loop B"]


def test_results_come_back_as_they_were_stored_to_the_microsecond(world: World) -> None:
    seen = datetime(2027, 7, 1, 9, 30, 15, 123456, tzinfo=UTC)
    result = Result(
        Campsite(
            "10", "044", "Loop A", "STANDARD ELECTRIC", frozenset({"tent"}), True, None, 1, 6, (Equipment("RV", 30),)
        ),
        {date(2027, 7, 20): seen, date(2027, 7, 21): seen.replace(microsecond=0)},
        {date(2027, 7, 1): seen},
    )
    add_scan(world.deps, add_user(world.deps), make_request())
    with world.deps.database.transaction() as connection:
        target_id = connection.execute(select(user_scans.c.target_id)).scalar_one()
        connection.execute(scan_results.insert().values(target_id=target_id, **result_columns(result)))
    with world.deps.database.reading() as connection:
        row = connection.execute(select(scan_results)).mappings().one()
    assert result_of(row) == result
    assert row["nights"] == {"2027-07-20": "2027-07-01T09:30:15.123456Z", "2027-07-21": "2027-07-01T09:30:15Z"}
    assert row["unknown_since"] == {"2027-07-01": "2027-07-01T09:30:15.123456Z"}
    assert (row["target_id"], row["campsite_id"]) == (target_id, "10")
