"""A24: what is stored comes back the same on SQLite and PostgreSQL."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import StatementError

from chalicelib.db import tables
from chalicelib.db.engine import Database

MOMENT = datetime(2027, 7, 20, 6, 5, 4, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"2027-07-20": "2026-03-02T09:30:15Z", "nested": {"list": [1, 2.5, None, True, "é ✓ \u2028 '\" \\ %s :name"]}},
        {"0": [], "": {}},
        {"big": 2**53, "small": -1, "float": 0.1},
        [],
        ["b", "a", "b"],
        [[None], {"a": [1]}],
        "text",
        0,
        False,
    ],
    ids=repr,
)
def test_json_round_trips(database: Database, document: Any) -> None:
    assert _detail(database, document) == document


def test_the_order_of_a_list_is_kept(database: Database) -> None:
    nights = [f"2027-07-{day:02}" for day in range(31, 0, -1)]
    assert _detail(database, nights) == nights


def test_no_json_is_null(database: Database) -> None:
    row = _outbox_row(told=None)
    with database.transaction() as connection:
        connection.execute(tables.notification_outbox.insert(), row)
        nulls = sa.select(sa.func.count()).where(tables.notification_outbox.c.told.is_(None))
        assert connection.execute(nulls).scalar_one() == 1


@pytest.mark.parametrize(
    "given",
    [
        MOMENT,
        MOMENT.replace(microsecond=0),
        MOMENT.replace(microsecond=999999),
        datetime(2027, 7, 20, 1, 5, 4, 3, tzinfo=timezone(timedelta(hours=-5))),
        datetime(2027, 7, 19, 23, 30, tzinfo=timezone(timedelta(hours=-7))),  # another day in UTC
        datetime(2027, 3, 14, 2, 30, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
    ids=str,
)
def test_a_moment_comes_back_aware_and_in_utc(database: Database, given: datetime) -> None:
    with database.transaction() as connection:
        connection.execute(tables.users.insert(), _user(created_at=given))
        found = connection.execute(sa.select(tables.users.c.created_at)).scalar_one()
    assert found == given
    assert found.tzinfo is UTC or found.utcoffset() == timedelta(0)


def test_a_naive_moment_is_refused(database: Database) -> None:
    with pytest.raises(StatementError, match="must be aware"), database.transaction() as connection:
        connection.execute(tables.users.insert(), _user(created_at=MOMENT.replace(tzinfo=None)))


def test_a_moment_that_is_not_there_stays_so(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(tables.users.insert(), _user(invited_at=None))
        assert connection.execute(sa.select(tables.users.c.invited_at)).scalar_one() is None


def test_moments_compare_and_sort_as_moments(database: Database) -> None:
    """SQLite compares text: whole seconds, fractions and other zones must not disturb it."""
    west = timezone(timedelta(hours=-8))
    second = MOMENT.replace(microsecond=0)
    moments = [second - timedelta(microseconds=1), second, (second + timedelta(microseconds=1)).astimezone(west)]
    with database.transaction() as connection:
        for moment in reversed(moments):
            connection.execute(tables.users.insert(), _user(created_at=moment))
        created = tables.users.c.created_at
        assert connection.execute(sa.select(created).order_by(created)).scalars().all() == moments
        assert connection.execute(sa.select(created).where(created < second)).scalars().all() == moments[:1]
        assert (
            connection.execute(sa.select(created).where(created >= second.astimezone(west)).order_by(created))
            .scalars()
            .all()
            == moments[1:]
        )


@pytest.mark.parametrize("given", [UUID(int=0), UUID(int=2**128 - 1), UUID("00000000-0000-4000-8000-00000000000a")])
def test_a_uuid_round_trips_and_is_found(database: Database, given: UUID) -> None:
    with database.transaction() as connection:
        connection.execute(tables.users.insert(), _user(id=given))
        found = connection.execute(sa.select(tables.users.c.id).where(tables.users.c.id == given)).scalar_one()
    assert found == given
    assert isinstance(found, UUID)


@pytest.mark.parametrize("given", [date(2027, 7, 20), date(2028, 2, 29), date(1999, 12, 31)], ids=str)
def test_a_date_round_trips_and_compares(database: Database, given: date) -> None:
    targets = tables.unique_targets
    with database.transaction() as connection:
        _put_campground(connection)
        connection.execute(targets.insert(), _target(start_date=given, end_date=given + timedelta(days=1)))
        found = connection.execute(sa.select(targets.c.start_date).where(targets.c.start_date <= given)).scalar_one()
        assert not connection.execute(sa.select(targets.c.id).where(targets.c.end_date <= given)).all()
    assert found == given
    assert type(found) is date


def test_defaults_of_the_schema_read_as_plain_values(database: Database) -> None:
    with database.transaction() as connection:
        _put_campground(connection)
        user, target, scan = _user(), _target(), uuid4()
        connection.execute(tables.users.insert(), user)
        connection.execute(tables.unique_targets.insert(), target)
        connection.execute(
            tables.user_scans.insert(),
            {"id": scan, "user_id": user["id"], "target_id": target["id"], "created_at": MOMENT},
        )
        row = connection.execute(sa.select(tables.user_scans)).mappings().one()
    assert (row["mode"], row["is_active"], row["min_stay_length"], row["preferred_types"]) == ("summary", True, 1, [])
    assert (row["require_electric"], row["version"], row["told_version"], row["told_at"]) == (False, 1, 0, None)


# --- rows --------------------------------------------------------------------------------------------------


def _detail(database: Database, document: Any) -> Any:
    with database.transaction() as connection:
        connection.execute(
            tables.admin_audit_events.insert(),
            {
                "id": uuid4(),
                "action": "a",
                "subject_type": "s",
                "subject_id": "1",
                "detail": document,
                "created_at": MOMENT,
            },
        )
    with database.reading() as connection:
        return connection.execute(sa.select(tables.admin_audit_events.c.detail)).scalar_one()


def _user(**columns: Any) -> dict[str, Any]:
    user_id = uuid4()
    return {"id": user_id, "email": f"{user_id}@example.org", "created_at": MOMENT, **columns}


def _put_campground(connection: sa.Connection) -> None:
    connection.execute(tables.providers.insert(), {"id": "recreation_gov", "name": "Recreation.gov"})
    connection.execute(
        tables.campgrounds.insert(), {"provider": "recreation_gov", "campground_id": "1", "updated_at": MOMENT}
    )


def _target(**columns: Any) -> dict[str, Any]:
    nights = {"start_date": date(2027, 7, 18), "end_date": date(2027, 7, 25)}
    named = {"provider": "recreation_gov", "campground_id": "1"}
    return {"id": uuid4(), "created_at": MOMENT, **named, **nights, **columns}


def _outbox_row(**columns: Any) -> dict[str, Any]:
    due = {"next_attempt_at": MOMENT, "created_at": MOMENT}
    return {"id": uuid4(), "detection_id": uuid4(), "delivery_key": "summary", "payload": {}, **due, **columns}
