"""A1 and the order of A2: which targets are due, and which of them comes first."""

from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import true

from chalicelib.accounts import users as people
from chalicelib.db.engine import Database
from chalicelib.db.tables import unique_targets, user_scans, users
from chalicelib.detection.due import due_targets
from chalicelib.scans import changes
from tests.support.rows import add_scan, add_user, make_request
from tests.support.standins import NOW, World, make_settings, make_world

TODAY = NOW.date()
DAY = timedelta(days=1)


def ago(seconds: float) -> Any:
    return NOW - timedelta(seconds=seconds)


@dataclass(frozen=True)
class Case:
    """One row of the truth table: what differs from an active scan of an allowed person on a new target."""

    why: str
    due: bool
    target: dict[str, Any] = field(default_factory=dict[str, Any])
    scan: dict[str, Any] = field(default_factory=dict[str, Any])
    user: dict[str, Any] = field(default_factory=dict[str, Any])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


TABLE = [
    Case("never checked", due=True),
    Case("scan paused", due=False, scan={"is_active": False}),
    Case("owner suspended", due=False, user={"scanning_enabled": False}),
    Case("not invited, open to all", due=True, user={"invited_at": None}),
    Case("not invited, invite only", due=False, user={"invited_at": None}, settings={"invite_only": True}),
    Case("invited, invite only", due=True, settings={"invite_only": True}),
    Case("last night is today", due=True, target={"start_date": TODAY - DAY, "end_date": TODAY + DAY}),
    Case("checkout is today", due=False, target={"start_date": TODAY - DAY, "end_date": TODAY}),
    Case("over for long", due=False, target={"start_date": TODAY - 9 * DAY, "end_date": TODAY - 8 * DAY}),
    Case("checked just now", due=False, target={"last_checked_at": NOW}),
    Case("checked half a minute ago", due=False, target={"last_checked_at": ago(30)}),
    Case("checked 59 s ago: the schedule came a second early", due=True, target={"last_checked_at": ago(59)}),
    Case("checked a minute ago", due=True, target={"last_checked_at": ago(60)}),
    Case("longer cooldown", due=False, target={"last_checked_at": ago(590)}, settings={"check_interval": 600}),
    Case("longer cooldown over", due=True, target={"last_checked_at": ago(600)}, settings={"check_interval": 600}),
    Case("no cooldown", due=True, target={"last_checked_at": NOW}, settings={"check_interval": 0}),
    Case("failing, left alone", due=False, target={"failures": 1, "retry_at": NOW + timedelta(seconds=1)}),
    Case("failing, left alone for long enough", due=True, target={"failures": 1, "retry_at": NOW}),
    Case("leased", due=False, target={"lease_until": NOW + timedelta(seconds=1)}),
    Case("lease ended", due=True, target={"lease_until": NOW}),
    Case("an attempt is no success", due=True, target={"last_attempt_at": NOW}),
]


@pytest.fixture
def world(database: Database) -> World:
    return make_world(database)


def due(world: World, **settings: Any) -> list[str]:
    """Campgrounds of the due targets, most urgent first."""
    deps = world.deps if not settings else _with_settings(world, **settings)
    return [target.campground_id for target in due_targets(deps, world.clock())]


def _with_settings(world: World, **settings: Any) -> Any:
    return replace(world.deps, settings=make_settings(settings))


def put(world: World, table: Any, where: Any = None, **values: Any) -> None:
    with world.deps.database.transaction() as connection:
        connection.execute(table.update().where(true() if where is None else where).values(**values))


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.why)
def test_a_target_is_due(world: World, case: Case) -> None:
    add_scan(world.deps, add_user(world.deps))
    for table, values in ((unique_targets, case.target), (user_scans, case.scan), (users, case.user)):
        if values:
            put(world, table, **values)
    assert bool(due(world, **case.settings)) is case.due


def test_a_target_that_nobody_follows_is_not_due(world: World) -> None:
    user_id = add_user(world.deps)
    changes.remove(world.deps, add_scan(world.deps, user_id), by=user_id)
    assert due(world) == []


def test_one_eligible_scan_is_enough_and_several_make_one_target(world: World) -> None:
    ann, bob, eve = (add_user(world.deps, f"{name}@example.org") for name in ("ann", "bob", "eve"))
    for user_id in (ann, bob, eve):
        add_scan(world.deps, user_id)
    people.suspend(world.deps, ann)
    assert due(world) == ["232447"]


def test_eligibility_is_one_scans_and_its_owners_together(world: World) -> None:
    """A suspended person's active scan and an allowed person's paused one make none."""
    ann, bob = (add_user(world.deps, f"{name}@example.org") for name in ("ann", "bob"))
    add_scan(world.deps, ann)
    changes.pause(world.deps, add_scan(world.deps, bob), by=bob)
    people.suspend(world.deps, ann)
    assert due(world) == []


def test_the_most_urgent_comes_first(world: World) -> None:
    """By last attempt, never tried first; then by nearest first night. Successes do not count."""
    user_id = add_user(world.deps)
    rows = [
        # campground, first night, last attempt, last success
        ("tried long ago", date(2027, 9, 1), ago(900), None),
        ("never tried, far", date(2027, 10, 1), None, None),
        ("tried lately, near", date(2027, 7, 2), ago(100), ago(5000)),
        ("never tried, near", date(2027, 7, 9), None, None),
        ("tried lately, far", date(2027, 8, 1), ago(100), ago(100)),
    ]
    for name, first, attempt, success in rows:
        world.provider.names[name] = name
        add_scan(world.deps, user_id, make_request(campground=name, dates=(first, first + 3 * DAY)))
        here = unique_targets.c.campground_id == name
        put(world, unique_targets, here, last_attempt_at=attempt, last_checked_at=success)
    assert due(world) == [
        "never tried, near",
        "never tried, far",
        "tried long ago",
        "tried lately, near",
        "tried lately, far",
    ]
