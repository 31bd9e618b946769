from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from chalicelib.catalog.lookup import CampgroundNotFound
from chalicelib.db.audit import OPERATOR
from chalicelib.db.tables import campgrounds, unique_targets, user_scans
from chalicelib.deps import Deps
from chalicelib.errors import DuplicateScan, Invalid, NotFound, QuotaReached
from chalicelib.providers.contract import CheckError
from chalicelib.scans import changes
from chalicelib.scans.request import ScanRequest
from chalicelib.stays.filters import Filters
from tests.support.rows import JULY, add_channel, add_scan, add_user, audited, make_request, version_of
from tests.support.standins import World, open_connections

# --- add -------------------------------------------------------------------------------------------------------------


def test_a_scan_is_new_to_its_target_and_audited(world: World) -> None:
    user_id = add_user(world.deps)
    added = changes.add(world.deps, user_id, make_request(min_stay_length=2), by=OPERATOR)
    with world.deps.database.reading() as connection:
        row = connection.execute(select(user_scans)).mappings().one()
    assert (row["id"], row["user_id"], row["target_id"]) == (added.id, user_id, added.target_id)
    assert (row["version"], row["told_version"], row["is_active"]) == (1, 0, True)
    assert ("scan.add", str(added.id)) in audited(world.deps)


def test_people_who_watch_the_same_share_a_target(world: World) -> None:
    ann, bob = add_user(world.deps), add_user(world.deps, "bob@example.org")
    hers = changes.add(world.deps, ann, make_request(), by=ann)
    his = changes.add(world.deps, bob, make_request(min_stay_length=3), by=bob)
    other_dates = changes.add(world.deps, bob, make_request(dates=(JULY[0], date(2027, 7, 21))), by=bob)
    assert hers.target_id == his.target_id != other_dates.target_id


def test_a_campground_is_looked_up_outside_any_transaction_and_once(world: World) -> None:
    open_then: list[int] = []
    world.provider.while_asked = lambda: open_then.append(open_connections(world.deps.database))
    user_id = add_user(world.deps)
    add_scan(world.deps, user_id)
    add_scan(world.deps, user_id, make_request(mode="direct"))
    assert world.provider.asked == ["232447"]
    assert open_then == [0]


def test_a_campground_that_does_not_exist_leaves_nothing_behind(world: World) -> None:
    with pytest.raises(CampgroundNotFound):
        add_scan(world.deps, add_user(world.deps), make_request(campground="999"))
    assert _count(world.deps) == 0


def test_any_other_trouble_of_the_booking_site_does_not_prevent_a_scan(world: World) -> None:
    world.provider.trouble = CheckError.TIMEOUT
    add_scan(world.deps, add_user(world.deps))
    with world.deps.database.reading() as connection:
        assert connection.execute(select(campgrounds.c.name)).scalar_one() is None


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (make_request(dates=(JULY[1], JULY[0])), "end_date"),
        (make_request(dates=(JULY[0], JULY[0])), "end_date"),
        (make_request(dates=(date(2027, 6, 1), date(2027, 7, 1))), "end_date"),  # its last night was yesterday
        (make_request(dates=(JULY[0], date(2037, 7, 1))), "end_date"),
        (replace(make_request(), provider="reserve_pluto"), "provider"),
        (make_request(campground=" "), "campground_id"),
        (make_request(campground="1" * 65), "campground_id"),
        (make_request(campground="1\x002"), "campground_id"),
        (make_request(mode="loud"), "mode"),
        (make_request(min_stay_length=0), "min_stay_length"),
        (make_request(min_stay_length=11), "min_stay_length"),
        (make_request(preferred_types=frozenset({"igloo"})), "preferred_types"),
        (make_request(people=0), "people"),
        (make_request(equipment=" "), "equipment"),
        (make_request(equipment="x" * 61), "equipment"),
        (make_request(equipment_length=20), "equipment_length"),
        (make_request(equipment="rv", equipment_length=0), "equipment_length"),
        (make_request(loops_wanted=frozenset({"x" * 101})), "loops_wanted"),
        (make_request(campsites_unwanted=frozenset(str(number) for number in range(201))), "campsites_unwanted"),
        (make_request(arrival_weekdays=frozenset({7})), "arrival_weekdays"),
        (
            make_request(dates=(date(2027, 7, 9), date(2027, 7, 11)), arrival_weekdays=frozenset({0})),
            "arrival_weekdays",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_name_and_asks_nobody(
    world: World, request_: ScanRequest, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        add_scan(world.deps, add_user(world.deps), request_)
    assert refused.value.field == field
    assert world.provider.asked == []


@pytest.mark.parametrize(
    "request_",
    [
        make_request(dates=(date(2027, 6, 1), date(2027, 7, 2))),  # its last night is today
        make_request(min_stay_length=10),
        make_request(dates=(date(2027, 7, 9), date(2027, 7, 11)), arrival_weekdays=frozenset({5})),
    ],
)
def test_what_just_makes_sense_is_accepted(world: World, request_: ScanRequest) -> None:
    assert add_scan(world.deps, add_user(world.deps), request_)


def test_a_scan_for_nobody_or_by_anothers_channel_is_refused(world: World) -> None:
    ann, bob = add_user(world.deps), add_user(world.deps, "bob@example.org")
    with pytest.raises(NotFound):
        add_scan(world.deps, uuid4())
    with pytest.raises(Invalid) as refused:
        add_scan(world.deps, ann, replace(make_request(), channel_id=add_channel(world.deps, bob)))
    assert refused.value.field == "channel_id"


# --- duplicates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (make_request(), make_request()),
        (make_request(loops_wanted=frozenset({"Loop  A"})), make_request(loops_wanted=frozenset({" loop a ", ""}))),
        (make_request(equipment="RV"), make_request(equipment="rv ")),
    ],
)
def test_the_same_wishes_again_are_a_duplicate_that_names_the_first(
    world: World, first: ScanRequest, second: ScanRequest
) -> None:
    user_id = add_user(world.deps)
    existing = add_scan(world.deps, user_id, first)
    with pytest.raises(DuplicateScan) as refused:
        add_scan(world.deps, user_id, second)
    assert refused.value.existing_id == existing


@pytest.mark.parametrize(
    "other", [make_request(mode="direct"), make_request(people=2), make_request(dates=(JULY[0], date(2027, 7, 19)))]
)
def test_other_wishes_mode_or_dates_are_no_duplicate(world: World, other: ScanRequest) -> None:
    user_id = add_user(world.deps)
    assert add_scan(world.deps, user_id) != add_scan(world.deps, user_id, other)


def test_of_many_at_once_one_wins_and_the_others_are_told_who(world: World) -> None:
    user_id = add_user(world.deps)
    start = Barrier(4)

    def add() -> UUID:
        start.wait()
        try:
            return add_scan(world.deps, user_id)
        except DuplicateScan as refused:
            return refused.existing_id

    with ThreadPoolExecutor(4) as pool:
        found = {future.result() for future in [pool.submit(add) for _ in range(4)]}
    assert len(found) == 1
    assert _count(world.deps) == 1


def test_many_people_at_once_get_one_target(world: World) -> None:
    people = [add_user(world.deps, f"p{number}@example.org") for number in range(4)]
    start = Barrier(4)

    def add(user_id: UUID) -> UUID:
        start.wait()
        return changes.add(world.deps, user_id, make_request(), by=user_id).target_id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(add, people))) == 1
    with world.deps.database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(unique_targets)).scalar_one() == 1


# --- quota -----------------------------------------------------------------------------------------------------------


def test_a_person_has_as_many_scans_as_the_instance_allows_whoever_adds_them(world: World) -> None:
    deps = _allowing(world, 2)
    ann, bob = add_user(deps), add_user(deps, "bob@example.org")
    first = add_scan(deps, ann, make_request(people=1))
    changes.pause(deps, first, by=ann)  # counts all the same
    add_scan(deps, ann, make_request(people=2))
    for by in (ann, OPERATOR):
        with pytest.raises(QuotaReached, match="allows 2 alerts a person"):
            changes.add(deps, ann, make_request(people=3), by=by)
    with pytest.raises(DuplicateScan):  # tells more than that there is no room
        changes.add(deps, ann, make_request(people=2), by=ann)
    add_scan(deps, bob)
    changes.remove(deps, first, by=ann)
    add_scan(deps, ann, make_request(people=3))
    assert _count(deps) == 3


def test_a_refused_scan_leaves_no_target_behind(world: World) -> None:
    deps = _allowing(world, 1)
    user_id = add_user(deps)
    add_scan(deps, user_id)
    with pytest.raises(QuotaReached, match="allows 1 alert a person"):
        add_scan(deps, user_id, make_request(dates=(JULY[0], date(2027, 7, 21))))
    with deps.database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(unique_targets)).scalar_one() == 1


def test_no_limit_is_none(world: World) -> None:
    deps = _allowing(world, 0)
    user_id = add_user(deps)
    for people in range(1, 4):
        add_scan(deps, user_id, make_request(people=people))
    assert _count(deps) == 3


def test_many_at_once_do_not_get_past_the_quota(world: World) -> None:
    deps = _allowing(world, 2)
    user_id = add_user(deps)
    start = Barrier(4)

    def add(people: int) -> bool:
        start.wait()
        try:
            add_scan(deps, user_id, make_request(people=people))
        except QuotaReached:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(add, range(1, 5))) == [False, False, True, True]
    assert _count(deps) == 2


# --- pause, resume, remove -------------------------------------------------------------------------------------------


def test_resuming_renews_a_scan_and_pausing_does_not(world: World) -> None:
    scan_id = add_scan(world.deps, add_user(world.deps))
    changes.pause(world.deps, scan_id, by=OPERATOR)
    changes.pause(world.deps, scan_id, by=OPERATOR)
    assert (_active(world.deps, scan_id), version_of(world.deps, scan_id)) == (False, 1)
    changes.resume(world.deps, scan_id, by=OPERATOR)
    changes.resume(world.deps, scan_id, by=OPERATOR)
    assert (_active(world.deps, scan_id), version_of(world.deps, scan_id)) == (True, 2)
    assert [action for action, subject in audited(world.deps) if subject == str(scan_id)] == [
        "scan.add",
        "scan.pause",
        "scan.resume",
    ]


def test_a_removed_scan_is_gone_and_its_target_stays(world: World) -> None:
    scan_id = add_scan(world.deps, add_user(world.deps))
    changes.remove(world.deps, scan_id, by=OPERATOR)
    assert _count(world.deps) == 0
    with world.deps.database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(unique_targets)).scalar_one() == 1
    with pytest.raises(NotFound):
        changes.remove(world.deps, scan_id, by=OPERATOR)


@pytest.mark.parametrize(
    "act",
    [
        changes.pause,
        changes.resume,
        changes.remove,
        lambda deps, scan_id, by: changes.change(deps, scan_id, lambda request: request, by=by),
    ],
)
def test_another_persons_scan_is_not_there(world: World, act: Callable[..., object]) -> None:
    scan_id = add_scan(world.deps, add_user(world.deps))
    with pytest.raises(NotFound):
        act(world.deps, scan_id, by=add_user(world.deps, "bob@example.org"))
    assert _active(world.deps, scan_id)


# --- change ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "renewed"),
    [
        ({"filters": Filters(people=4)}, True),
        ({"end_date": date(2027, 7, 25)}, True),
        ({"campground_id": "232450"}, True),
        ({"mode": "direct"}, False),
        ({}, False),
    ],
)
def test_other_wishes_or_another_target_renew_a_scan(world: World, changed: dict[str, Any], renewed: bool) -> None:
    scan_id = add_scan(world.deps, add_user(world.deps))
    target_id = changes.change(world.deps, scan_id, lambda request: replace(request, **changed), by=OPERATOR)
    assert version_of(world.deps, scan_id) == (2 if renewed else 1)
    with world.deps.database.reading() as connection:
        target = connection.execute(select(unique_targets).where(unique_targets.c.id == target_id)).mappings().one()
        row = connection.execute(select(user_scans)).mappings().one()
    stored: dict[str, Any] = {**row, **target, "filters": Filters(people=row["people"])}
    assert row["target_id"] == target_id
    assert {name: stored[name] for name in changed} == changed


def test_moving_a_scan_from_a_broken_channel_to_a_working_one_renews_it(world: World) -> None:
    user_id = add_user(world.deps)
    scan_id = add_scan(world.deps, user_id)
    working = add_channel(world.deps, user_id)
    assert version_of(world.deps, scan_id) == 2
    changes.change(world.deps, scan_id, lambda request: replace(request, channel_id=working), by=user_id)
    assert version_of(world.deps, scan_id) == 2


def test_a_change_into_what_another_scan_watches_is_a_duplicate(world: World) -> None:
    user_id = add_user(world.deps)
    existing = add_scan(world.deps, user_id)
    scan_id = add_scan(world.deps, user_id, make_request(people=2))
    with pytest.raises(DuplicateScan) as refused:
        changes.change(world.deps, scan_id, lambda _: make_request(), by=user_id)
    assert refused.value.existing_id == existing


def test_a_change_made_meanwhile_is_not_lost(world: World) -> None:
    user_id = add_user(world.deps)
    scan_id = add_scan(world.deps, user_id)
    asked: list[ScanRequest] = []

    def edit(request: ScanRequest) -> ScanRequest:
        if not asked:
            asked.append(request)
            changes.change(world.deps, scan_id, lambda other: replace(other, filters=Filters(people=3)), by=user_id)
        return replace(request, mode="direct")

    changes.change(world.deps, scan_id, edit, by=user_id)
    with world.deps.database.reading() as connection:
        row = connection.execute(select(user_scans)).mappings().one()
    assert (row["mode"], row["people"], row["version"]) == ("direct", 3, 2)


def _active(deps: Deps, scan_id: UUID) -> bool:
    with deps.database.reading() as connection:
        return connection.execute(select(user_scans.c.is_active).where(user_scans.c.id == scan_id)).scalar_one()


def _allowing(world: World, most: int) -> Deps:
    return replace(world.deps, settings=world.deps.settings.model_copy(update={"max_scans": most}))


def _count(deps: Deps) -> int:
    with deps.database.reading() as connection:
        return connection.execute(select(func.count()).select_from(user_scans)).scalar_one()
