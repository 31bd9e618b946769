from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update

from chalicelib.db.audit import OPERATOR
from chalicelib.db.paging import Cursor
from chalicelib.db.scan_rows import result_columns
from chalicelib.db.tables import notification_channels, provider_states, scan_results, unique_targets, user_scans, users
from chalicelib.deps import Deps
from chalicelib.errors import NotFound
from chalicelib.scans import changes, views
from chalicelib.scans.request import ScanRequest
from chalicelib.stays.campsites import Campsite
from chalicelib.stays.openings import Result
from tests.support.rows import add_channel, add_scan, add_user, make_request
from tests.support.standins import NOW, World, make_world

TENT = Campsite("10", "044", "Loop A", "TENT ONLY NONELECTRIC", frozenset({"tent"}), electric=False)
RV = Campsite("11", "012", "Loop B", "RV ELECTRIC", frozenset({"rv"}), electric=True)


def test_results_are_the_targets_open_nights_by_campsite_name(world: World) -> None:
    scan_id = _watch(world.deps)
    _store(world.deps, TENT, ["2027-07-12"])
    _store(world.deps, RV, ["2027-07-11", "2027-07-15"])
    found = views.show(world.deps, scan_id, by=OPERATOR).to_json()
    assert found["results"] == [
        {
            "campsite_id": "11",
            "name": "012",
            "nights": ["2027-07-11", "2027-07-15"],
            "loop": "Loop B",
            "type": "RV ELECTRIC",
            "seen_at": {"2027-07-11": "2027-07-01T12:00:00.123456Z", "2027-07-15": "2027-07-01T12:00:00.123456Z"},
            "unconfirmed": [],
            "min_stay": None,
            "too_short": [],
            "link": "https://booking.example/campsites/11",
        },
        {
            "campsite_id": "10",
            "name": "044",
            "nights": ["2027-07-12"],
            "loop": "Loop A",
            "type": "TENT ONLY NONELECTRIC",
            "seen_at": {"2027-07-12": "2027-07-01T12:00:00.123456Z"},
            "unconfirmed": [],
            "min_stay": None,
            "too_short": [],
            "link": "https://booking.example/campsites/10",
        },
    ]


@pytest.mark.parametrize(
    ("wishes", "nights", "suiting"),
    [
        ({}, ["2027-07-09", "2027-07-10", "2027-07-19", "2027-07-20"], ["2027-07-10", "2027-07-19"]),  # 20: checkout
        ({"min_stay_length": 2}, ["2027-07-11", "2027-07-13", "2027-07-14"], ["2027-07-13", "2027-07-14"]),
        ({"preferred_types": frozenset({"rv"})}, ["2027-07-11"], []),
        ({"require_electric": True}, ["2027-07-11"], []),
        ({"people": 4}, ["2027-07-11"], []),  # unknown never passes
        ({"loops_unwanted": frozenset({"loop a"})}, ["2027-07-11"], []),
        (
            {"arrival_weekdays": frozenset({4})},
            ["2027-07-15", "2027-07-16", "2027-07-17"],
            ["2027-07-16", "2027-07-17"],
        ),
    ],
)
def test_results_obey_range_and_filters(
    world: World, wishes: Mapping[str, Any], nights: list[str], suiting: list[str]
) -> None:
    scan_id = _watch(world.deps, make_request(**wishes))
    _store(world.deps, TENT, nights)
    assert _nights(world.deps, scan_id) == suiting


def test_nights_before_today_are_not_shown_and_todays_is(world: World) -> None:
    scan_id = _watch(world.deps, make_request(min_stay_length=2))
    _store(world.deps, TENT, ["2027-07-11", "2027-07-12", "2027-07-13"])
    world.clock.now = datetime.fromisoformat("2027-07-12T23:59:59Z")
    assert _nights(world.deps, scan_id) == ["2027-07-12", "2027-07-13"]
    world.clock.advance(seconds=1)
    assert _nights(world.deps, scan_id) == []


def test_nights_that_the_last_check_did_not_see_are_marked(world: World) -> None:
    scan_id = _watch(world.deps)
    _store(world.deps, TENT, ["2027-07-12"], unknown=["2027-07-01"])
    assert views.show(world.deps, scan_id, by=OPERATOR).to_json()["results"][0]["unconfirmed"] == ["2027-07-12"]


def test_nights_too_few_for_the_sites_own_minimum_stay_are_shown_and_marked(world: World) -> None:
    scan_id = _watch(world.deps)
    _store(world.deps, replace(TENT, min_stay=2), ["2027-07-11", "2027-07-13", "2027-07-14"])
    (found,) = views.show(world.deps, scan_id, by=OPERATOR).to_json()["results"]
    assert found["nights"] == ["2027-07-11", "2027-07-13", "2027-07-14"]
    assert (found["min_stay"], found["too_short"]) == (2, ["2027-07-11"])


def test_a_scan_tells_what_it_watches(world: World) -> None:
    scan_id = _watch(world.deps, make_request(min_stay_length=2, preferred_types=frozenset({"tent", "rv"}), people=2))
    shown = views.show(world.deps, scan_id, by=OPERATOR).to_json()
    assert {
        "provider": "recreation_gov",
        "campground_id": "232447",
        "campground_name": "Upper Pines",
        "start_date": "2027-07-10",
        "end_date": "2027-07-20",
        "min_stay_length": 2,
        "mode": "summary",
        "preferred_types": ["rv", "tent"],
        "require_electric": False,
        "require_accessible": False,
        "people": 2,
        "is_active": True,
        "channel_id": None,
    }.items() <= shown.items()


# --- how it stands ---------------------------------------------------------------------------------------------------


def test_a_new_scan_is_due_at_once(world: World) -> None:
    standing = views.show(world.deps, _watch(world.deps), by=OPERATOR).scan.standing
    assert standing == views.Standing("not_checked", None, NOW, None, None, has_working_channel=True)


def test_a_checked_scan_is_due_after_its_cooldown(world: World) -> None:
    scan_id = _watch(world.deps)
    _set(world.deps, last_checked_at=NOW)
    standing = views.show(world.deps, scan_id, by=OPERATOR).scan.standing
    assert standing == views.Standing(
        "watching", NOW, NOW + timedelta(seconds=60), None, None, has_working_channel=True
    )


def test_a_failing_target_tells_since_when_why_and_when_it_is_tried_again(world: World) -> None:
    scan_id = _watch(world.deps)
    since, retry = NOW + timedelta(minutes=1), NOW + timedelta(minutes=5)
    _set(world.deps, last_checked_at=NOW, failing_since=since, error_category="malformed", retry_at=retry)
    standing = views.show(world.deps, scan_id, by=OPERATOR).scan.standing
    assert standing == views.Standing("unavailable", NOW, retry, since, "malformed", has_working_channel=True)


def test_an_unavailable_provider_speaks_for_its_targets(world: World) -> None:
    scan_id = _watch(world.deps)
    _set(world.deps, last_checked_at=NOW)
    since, until = NOW - timedelta(minutes=1), NOW + timedelta(minutes=30)
    with world.deps.database.transaction() as connection:
        connection.execute(
            provider_states.insert().values(
                provider="recreation_gov",
                unavailable_since=since,
                open_until=until,
                error_category="blocked",
            )
        )
    standing = views.show(world.deps, scan_id, by=OPERATOR).scan.standing
    assert standing == views.Standing("unavailable", NOW, until, since, "blocked", has_working_channel=True)


def test_what_stops_a_scan_is_named_and_then_no_check_is_due(database_url: str, world: World) -> None:
    invite_only = replace(make_world(world.deps.database, invite_only=True).deps, clock=world.clock)
    scan_id = _watch(world.deps)
    stops: list[tuple[str, Any]] = [
        ("not_invited", update(users).values(invited_at=None)),
        ("suspended", update(users).values(scanning_enabled=False)),
        ("over", update(unique_targets).values(start_date=date(2027, 6, 1), end_date=date(2027, 7, 1))),
        ("paused", update(user_scans).values(is_active=False)),
    ]
    for word, stop in stops:
        with world.deps.database.transaction() as connection:
            connection.execute(stop)
        standing = views.show(invite_only, scan_id, by=OPERATOR).scan.standing
        assert (standing.word, standing.next_check_at) == (word, None)


def test_an_invitation_matters_only_where_the_instance_asks_for_one(world: World) -> None:
    scan_id = _watch(world.deps)
    with world.deps.database.transaction() as connection:
        connection.execute(update(users).values(invited_at=None))
    assert views.show(world.deps, scan_id, by=OPERATOR).scan.standing.word == "not_checked"


@pytest.mark.parametrize("broken", [{"enabled": False}, {"credentials": None}])
def test_a_scan_whose_channel_does_not_work_says_so(world: World, broken: dict[str, Any]) -> None:
    scan_id = _watch(world.deps)
    with world.deps.database.transaction() as connection:
        connection.execute(update(notification_channels).values(**broken))
    standing = views.show(world.deps, scan_id, by=OPERATOR).scan.standing
    assert (standing.word, standing.has_working_channel) == ("no_channel", False)


def test_a_scans_own_channel_alone_counts_for_it(world: World) -> None:
    user_id = add_user(world.deps)
    add_channel(world.deps, user_id)
    own = add_channel(world.deps, user_id)
    scan_id = add_scan(world.deps, user_id, replace(make_request(), channel_id=own))
    with world.deps.database.transaction() as connection:
        connection.execute(update(notification_channels).where(notification_channels.c.id == own).values(enabled=False))
    assert not views.show(world.deps, scan_id, by=user_id).scan.standing.has_working_channel


# --- whose -----------------------------------------------------------------------------------------------------------


def test_a_person_sees_only_their_own_scans_and_an_administrator_all(world: World) -> None:
    ann, bob = add_user(world.deps), add_user(world.deps, "bob@example.org")
    hers, his = add_scan(world.deps, ann), add_scan(world.deps, bob)
    assert [scan.id for scan in views.page(world.deps, by=ann)] == [hers]
    assert [scan.id for scan in views.page(world.deps, by=ann, user_id=bob)] == []
    assert {scan.id for scan in views.page(world.deps, by=OPERATOR)} == {hers, his}
    assert [scan.id for scan in views.page(world.deps, by=OPERATOR, user_id=bob)] == [his]
    with pytest.raises(NotFound):
        views.show(world.deps, his, by=ann)
    with pytest.raises(NotFound):
        views.show(world.deps, uuid4(), by=OPERATOR)


@pytest.mark.parametrize("newest_first", [False, True])
def test_scans_are_paged_in_either_order_even_where_moments_are_the_same(world: World, newest_first: bool) -> None:
    user_id = add_user(world.deps)
    requests = [make_request(people=number) for number in range(1, 6)]
    same = sorted(add_scan(world.deps, user_id, request) for request in requests[:4])
    world.clock.advance(microseconds=1)
    last = add_scan(world.deps, user_id, requests[4])
    found: list[UUID] = []
    after: Cursor | None = None
    while page := views.page(world.deps, by=user_id, after=after, limit=2, newest_first=newest_first):
        found += [scan.id for scan in page]
        after = page[-1].created_at, page[-1].id
    assert found == ([last, *reversed(same)] if newest_first else [*same, last])


def test_an_administrator_filters_scans_by_booking_site_campground_and_whether_they_are_active(world: World) -> None:
    ann, bob = add_user(world.deps), add_user(world.deps, "bob@example.org")
    upper = add_scan(world.deps, ann)
    lower = add_scan(world.deps, ann, make_request(campground="232450"))
    paused = add_scan(world.deps, bob, make_request(campground="232450"))
    changes.pause(world.deps, paused, by=bob)

    def found(**filters: Any) -> set[UUID]:
        return {scan.id for scan in views.page(world.deps, by=OPERATOR, **filters)}

    assert found(provider="recreation_gov") == {upper, lower, paused}
    assert found(provider="sandbox") == set()
    assert found(campground_id="232450") == {lower, paused}
    assert found(active=True) == {upper, lower}
    assert found(active=False) == {paused}
    assert found(provider="recreation_gov", campground_id="232450", active=True, user_id=ann) == {lower}
    assert [scan.id for scan in views.page(world.deps, by=ann, campground_id="232450")] == [lower]  # still only hers


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_filtered_list_goes_on_where_its_page_ended(world: World, newest_first: bool) -> None:
    user_id = add_user(world.deps)
    wanted: list[UUID] = []
    for number in range(1, 5):
        world.clock.advance(seconds=1)
        wanted.append(add_scan(world.deps, user_id, make_request(campground="232450", people=number)))
        add_scan(world.deps, user_id, make_request(people=number))
    found: list[UUID] = []
    after: Cursor | None = None
    while page := views.page(
        world.deps, by=OPERATOR, campground_id="232450", after=after, limit=3, newest_first=newest_first
    ):
        found += [scan.id for scan in page]
        after = page[-1].created_at, page[-1].id
    assert found == (wanted[::-1] if newest_first else wanted)


def _watch(deps: Deps, request: ScanRequest | None = None) -> UUID:
    user_id = add_user(deps)
    add_channel(deps, user_id)
    return add_scan(deps, user_id, request)


def _set(deps: Deps, **values: Any) -> None:
    with deps.database.transaction() as connection:
        connection.execute(update(unique_targets).values(**values))


def _store(deps: Deps, campsite: Campsite, nights: list[str], unknown: list[str] | None = None) -> None:
    """Results of the one target that there is."""
    seen = {date.fromisoformat(night): NOW for night in nights}
    result = Result(campsite, seen, {date.fromisoformat(month): NOW for month in unknown or []})
    with deps.database.transaction() as connection:
        target_id = connection.execute(unique_targets.select()).mappings().one()["id"]
        connection.execute(scan_results.insert().values(target_id=target_id, **result_columns(result)))


def _nights(deps: Deps, scan_id: UUID) -> list[str]:
    return [night for found in views.show(deps, scan_id, by=OPERATOR).to_json()["results"] for night in found["nights"]]
