"""A6 and A7, through a check: what is news to which scan."""

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from chalicelib.accounts import channels, users
from chalicelib.db.audit import OPERATOR
from chalicelib.db.tables import scan_results
from chalicelib.scans import changes
from chalicelib.scans.request import ScanRequest
from chalicelib.stays.filters import Filters
from sandbox.campgrounds import Campground, Campsite
from sandbox.faults import Fault
from tests.support.live import JULY, SITES, Live
from tests.support.rows import add_channel, add_user, make_request


def july(*days: int) -> list[date]:
    return [date(2027, 7, day) for day in days]


def told(live: Live, scan_id: UUID | None = None) -> list[dict[str, list[int]]]:
    """What each intent tells, oldest first: days of July by campsite."""
    return [
        {
            opening["campsite_id"]: [int(night[-2:]) for night in opening["nights"]]
            for opening in row["payload"]["openings"]
        }
        for row in live.rows()
        if scan_id in (None, row["scan_id"])
    ]


def asks(live: Live, scan_id: UUID, **filters: Any) -> None:
    """Change what a scan wants."""
    changes.change(live.deps, scan_id, lambda _: make_request(campground="100", dates=JULY, **filters), by=OPERATOR)


# --- runs and new nights -------------------------------------------------------------------------------------


def test_a_first_check_tells_everything_that_is_open(live: Live) -> None:
    live.camper()
    live.site.open("100", "101", july(3, 4))
    live.site.open("100", "102", july(20))
    live.detect()
    assert told(live) == [{"101": [3, 4], "102": [20]}]


def test_an_unrelated_new_night_does_not_tell_an_announced_run_again(live: Live) -> None:
    live.camper()
    live.site.open("100", "101", july(3, 4))
    live.detect()
    live.site.open("100", "101", july(9))
    live.checked_again()
    assert told(live)[1:] == [{"101": [9]}]


def test_an_unrelated_new_night_that_is_too_short_a_stay_is_no_news(live: Live) -> None:
    live.camper(min_stay_length=2)
    live.site.open("100", "101", july(3, 4))
    live.detect()
    live.site.open("100", "101", july(6))
    assert live.checked_again().counts["openings"] == 1
    assert told(live) == [{"101": [3, 4]}]


def test_a_new_night_that_makes_a_run_longer_tells_the_whole_run(live: Live) -> None:
    live.camper(min_stay_length=2)
    live.site.open("100", "101", july(3, 4))
    live.detect()
    live.site.open("100", "101", july(5))
    live.checked_again()
    assert told(live)[1:] == [{"101": [3, 4, 5]}]


def test_a_night_taken_out_of_a_run_is_no_news(live: Live) -> None:
    live.camper()
    live.site.open("100", "101", july(3, 4, 5))
    live.detect()
    live.site.take("100", "101", july(4))
    live.checked_again()
    assert len(told(live)) == 1


def test_a_stay_over_the_end_of_a_month_counts_as_one(live: Live) -> None:
    live.camper(dates=(date(2027, 7, 1), date(2027, 9, 1)), min_stay_length=4)
    live.site.open("100", "101", [*july(30, 31), date(2027, 8, 1), date(2027, 8, 2)])
    live.site.open("100", "102", [*july(30, 31), date(2027, 8, 1)])
    live.detect()
    assert told(live) == [{"101": [30, 31, 1, 2]}]


def test_nights_of_two_campsites_make_no_stay(live: Live) -> None:
    live.camper(min_stay_length=2)
    live.site.open("100", "101", july(3))
    live.site.open("100", "102", july(4))
    live.detect()
    assert told(live) == []


def test_a_stay_does_not_reach_beyond_the_range(live: Live) -> None:
    live.camper(dates=(date(2027, 7, 10), date(2027, 7, 12)), min_stay_length=2)
    live.site.open("100", "101", july(9, 10))
    live.site.open("100", "102", july(11, 12))
    live.detect()
    assert told(live) == []


@pytest.mark.parametrize(
    "status", ["Open", "NYR", "Lottery", "Checkout", "Closed", "Reserved", "Not Available", "available", "Walk-up"]
)
def test_only_available_opens_a_night(live: Live, status: str) -> None:
    live.camper()
    live.site.set("100", "101", july(3, 4), status)
    live.detect()
    assert (live.results(), told(live)) == ({}, [])


# --- who joins, and who has changed ---------------------------------------------------------------------------


def test_joining_a_target_that_others_watch_does_not_mean_silence(live: Live) -> None:
    _, first = live.camper()
    live.site.open("100", "101", july(3))
    live.detect()
    bob = add_user(live.deps, "bob@example.org")
    add_channel(live.deps, bob, "v" * 30)
    second = live.scan(bob)
    run = live.checked_again()
    assert (run.counts["openings"], run.counts["intents"]) == (0, 1)
    assert (told(live, first), told(live, second)) == ([{"101": [3]}], [{"101": [3]}])
    assert len({row["detection_id"] for row in live.rows()}) == 2
    assert live.checked_again().counts["intents"] == 0


def _resume(live: Live, scan_id: UUID) -> None:
    changes.pause(live.deps, scan_id, by=OPERATOR)
    changes.resume(live.deps, scan_id, by=OPERATOR)


def _regain_permission(live: Live, scan_id: UUID) -> None:
    user_id = users.find(live.deps, "ann@example.org").id
    users.suspend(live.deps, user_id)
    users.restore(live.deps, user_id)


def _find_a_channel(live: Live, scan_id: UUID) -> None:
    user_id = users.find(live.deps, "ann@example.org").id
    for channel in channels.of_user(live.deps, user_id):
        channels.remove(live.deps, channel.id, by=user_id)
    add_channel(live.deps, user_id, "w" * 30)


def _want_more(live: Live, scan_id: UUID) -> None:
    asks(live, scan_id, people=2)


def _ask_for_the_same(live: Live, scan_id: UUID) -> None:
    asks(live, scan_id)


def _add_a_channel(live: Live, scan_id: UUID) -> None:
    add_channel(live.deps, users.find(live.deps, "ann@example.org").id, "w" * 30)


def _take_away_and_leave_a_channel(live: Live, scan_id: UUID) -> None:
    _add_a_channel(live, scan_id)
    user_id = users.find(live.deps, "ann@example.org").id
    channels.remove(live.deps, channels.of_user(live.deps, user_id)[0].id, by=user_id)


@pytest.mark.parametrize(
    ("change", "told_again"),
    [
        (_want_more, True),
        (_resume, True),
        (_regain_permission, True),
        (_find_a_channel, True),
        (_ask_for_the_same, False),
        (_add_a_channel, False),
        (_take_away_and_leave_a_channel, False),
    ],
)
def test_after_a_change_everything_open_is_new_once(
    live: Live, change: Callable[[Live, UUID], None], told_again: bool
) -> None:
    _, scan_id = live.camper()
    live.site.open("100", "101", july(3))
    live.detect()
    change(live, scan_id)
    run = live.checked_again()
    assert (run.counts["openings"], run.counts["intents"]) == (0, int(told_again))
    assert live.checked_again().counts["intents"] == 0


def test_a_new_mode_alone_keeps_what_was_told(live: Live) -> None:
    """It is another way to tell and not another wish."""
    _, scan_id = live.camper()
    live.site.open("100", "101", july(3))
    live.detect()
    asks(live, scan_id, mode="direct")
    live.checked_again()
    assert len(live.rows()) == 1


def test_moving_to_another_target_counts_as_a_change(live: Live) -> None:
    user_id, scan_id = live.camper()
    other = (date(2027, 7, 1), date(2027, 7, 15))
    live.scan(user_id, dates=other, mode="direct")
    live.site.open("100", "101", july(3))
    live.detect()
    before = len(live.rows())
    changes.change(live.deps, scan_id, lambda _: make_request(campground="100", dates=other), by=OPERATOR)
    live.checked_again()
    assert [row["scan_id"] for row in live.rows()][before:] == [scan_id]


def test_a_paused_scan_is_not_told_of_what_others_are(live: Live) -> None:
    _, paused = live.camper()
    live.camper(email="bob@example.org", key="v" * 30)
    changes.pause(live.deps, paused, by=OPERATOR)
    live.site.open("100", "101", july(3))
    live.detect()
    assert told(live, paused) == []
    assert len(live.rows()) == 1


def test_a_changed_scan_is_not_told_of_what_no_longer_suits_it(live: Live) -> None:
    _, scan_id = live.camper()
    live.site.open("100", "101", july(3))
    live.site.open("100", "102", july(8, 9))
    live.detect()
    asks(live, scan_id, min_stay_length=2)
    live.checked_again()
    assert told(live)[1:] == [{"102": [8, 9]}]


# --- changes while a check is under way ----------------------------------------------------------------------


def meanwhile(live: Live, do: Callable[[], object]) -> None:
    def hook(_: Any) -> None:
        live.site.on_request = None
        do()

    live.site.on_request = hook


@pytest.mark.parametrize("unchanged", [False, True])
def test_filters_changed_while_a_check_is_under_way_are_not_lost(live: Live, unchanged: bool) -> None:
    """Also where the check finds the same as last time, and would write its one row."""
    _, scan_id = live.camper(min_stay_length=5)
    live.site.open("100", "101", july(3))
    if unchanged:
        live.detect()
        live.clock.advance(minutes=1)
    assert live.rows() == []
    meanwhile(live, lambda: asks(live, scan_id, min_stay_length=1))
    live.detect()
    live.checked_again()
    assert told(live) == [{"101": [3]}]


def test_a_scan_added_while_a_check_is_under_way_is_told_once(live: Live) -> None:
    user_id, _ = live.camper()
    live.site.open("100", "101", july(3))
    live.detect()
    live.clock.advance(minutes=1)
    added: list[UUID] = []
    meanwhile(live, lambda: added.append(live.scan(user_id, mode="direct")))
    live.detect()
    live.checked_again()
    assert told(live, added[0]) == [{"101": [3]}]


def test_a_scan_paused_while_a_check_is_under_way_is_told_when_it_is_resumed(live: Live) -> None:
    _, scan_id = live.camper()
    live.site.open("100", "101", july(3))
    meanwhile(live, lambda: changes.pause(live.deps, scan_id, by=OPERATOR))
    live.detect()
    assert live.rows() == []
    changes.resume(live.deps, scan_id, by=OPERATOR)
    live.checked_again()
    assert told(live) == [{"101": [3]}]


def test_a_scan_moved_away_while_a_check_is_under_way_is_told_of_its_new_target(live: Live) -> None:
    _, scan_id = live.camper()
    live.site.open("100", "101", july(3, 20))
    narrower: Callable[[ScanRequest], ScanRequest] = lambda _: make_request(  # noqa: E731
        campground="100", dates=(date(2027, 7, 1), date(2027, 7, 15))
    )
    meanwhile(live, lambda: changes.change(live.deps, scan_id, narrower, by=OPERATOR))
    live.detect()
    live.checked_again()
    assert told(live) == [{"101": [3]}]


# --- filters, by what answers and metadata tell ---------------------------------------------------------------

GROUND = Campground(
    "100",
    "Upper Pines",
    (
        Campsite("101", "001", "Loop A", type="STANDARD ELECTRIC", max_people=6, equipment={"Tent": 0, "Trailer": 30}),
        Campsite("102", "002", "Loop A", type="TENT ONLY NONELECTRIC", max_people=4, accessible=True),
        Campsite(
            "103", "003", "Loop B", type="CABIN NONELECTRIC", max_people=0, attributes={"Electricity Hookup": "15"}
        ),
        Campsite("104", "004", "Loop B", type="GROUP STANDARD NONELECTRIC", min_people=7, max_people=30),
        Campsite("105", "005", "", type="STANDARD NONELECTRIC", attributes={"Electricity Hookup": "N/A"}),
    ),
)


@pytest.mark.parametrize(
    ("filters", "sites"),
    [
        (Filters(), "101 102 103 104 105"),
        (Filters(preferred_types=frozenset({"tent"})), "101 102 104 105"),
        (Filters(preferred_types=frozenset({"rv"})), "101 104 105"),
        (Filters(preferred_types=frozenset({"cabin", "group"})), "103 104"),
        (Filters(require_electric=True), "101 103"),
        (Filters(require_accessible=True), "102"),
        (Filters(people=5), "101 105"),
        (Filters(people=7), "104"),
        (Filters(equipment="rv", equipment_length=28), "101"),
        (Filters(equipment="rv", equipment_length=31), ""),
        (Filters(loops_wanted=frozenset({"loop b"})), "103 104"),
        (Filters(loops_unwanted=frozenset({"Loop A"})), "103 104 105"),
        (Filters(campsites_wanted=frozenset({"002", "105"})), "102 105"),
        (Filters(campsites_unwanted=frozenset({"002", "105"})), "101 103 104"),
        (Filters(arrival_weekdays=frozenset({4})), "101 102 103 104 105"),  # 9 July is a Friday
        (Filters(arrival_weekdays=frozenset({0})), ""),
        (Filters(min_stay_length=2, arrival_weekdays=frozenset({5})), ""),  # Saturday is the last night
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_filters_choose_campsites(live: Live, filters: Filters, sites: str) -> None:
    live.site.add_campground(GROUND)
    live.camper(mode="direct", **asdict(filters))
    for site in GROUND.sites:
        live.site.open("100", site.id, july(9, 10))
    live.detect()
    assert [row["delivery_key"] for row in live.rows()] == sites.split()


def test_filters_are_kept_whole_on_both_databases(live: Live) -> None:
    wishes: dict[str, Any] = {
        "preferred_types": frozenset({"tent", "rv"}),
        "people": 5,
        "equipment": "Trailer",
        "equipment_length": 30,
        "loops_wanted": frozenset({"Loop A"}),
        "campsites_unwanted": frozenset({"009"}),
        "arrival_weekdays": frozenset({4, 5}),
        "require_electric": True,
    }
    live.site.add_campground(GROUND)
    live.camper(min_stay_length=2, **wishes)
    for site in GROUND.sites:
        live.site.open("100", site.id, july(8, 9, 10))
    live.detect()
    assert told(live) == [{"101": [9, 10]}]  # from the Friday on


def test_what_metadata_tells_late_is_told_late(live: Live) -> None:
    """The first check has none, and electric is unknown: it passes no filter. It is news when it is known."""
    live.site.add_campground(
        Campground(
            "100", "Upper Pines", (Campsite("101", "001", type="YURT", attributes={"Electricity Hookup": "50"}),)
        )
    )
    _, picky = live.camper(require_electric=True)
    live.site.open("100", "101", july(3, 4))
    live.site.misbehave(Fault.TRUNCATED, on="campsites")
    live.detect()
    assert told(live) == []
    for _ in range(15):
        live.checked_again()
    assert told(live, picky) == [{"101": [3, 4]}]


def test_metadata_that_comes_late_is_no_news_to_those_who_did_not_need_it(live: Live) -> None:
    live.camper()
    live.site.open("100", "101", july(3, 4))
    live.site.misbehave(Fault.TRUNCATED, on="campsites")
    for _ in range(15):
        live.checked_again()
    assert "100 campsites" in live.asked()[2:]
    assert len(live.rows()) == 1


def test_an_answer_without_metadata_does_not_wipe_what_was_known(live: Live) -> None:
    """A day later the search is blank for once: nothing is unlearned, and nothing raised again when it is back."""
    live.site.add_campground(Campground("100", "Upper Pines", (Campsite("101", "001", accessible=True), *SITES[1:])))
    live.camper(require_accessible=True)
    live.site.open("100", "101", july(3, 4))
    live.detect()
    live.clock.advance(days=1, minutes=1)
    live.site.misbehave(Fault.COUNT_ZERO, on="campsites")
    live.detect()
    live.clock.advance(days=1, minutes=1)
    live.detect()
    live.checked_again()
    assert live.asked().count("100 campsites") >= 3
    assert len(live.rows()) == 1


def test_a_minimum_stay_is_noted_and_neither_holds_an_alert_back_nor_causes_one(live: Live) -> None:
    """To tell too much costs a look; the night before may open in a minute, and then it is no news here."""
    rules = {"minConsecutiveStay": {"value": 3, "units": "consecutive nights", "secondary_value": "strict"}}
    live.site.add_campground(Campground("100", "Upper Pines", (replace(SITES[0], rules=rules),)))
    live.camper()
    live.site.open("100", "101", july(3, 4))
    live.detect()
    assert "2 nights (min. stay 3 nights)" in live.row()["payload"]["message"]
    live.site.add_campground(Campground("100", "Upper Pines", SITES))
    assert live.checked_again().counts["openings"] == 0
    assert len(live.rows()) == 1
    with live.deps.database.reading() as connection:
        assert connection.execute(select(scan_results.c.campsite)).scalar_one()["min_stay"] is None


# --- waking drain ----------------------------------------------------------------------------------------------


def test_drain_is_woken_when_intents_are_committed_and_a_failed_wake_is_only_logged(live: Live) -> None:
    seen: list[int] = []

    def wake() -> None:
        seen.append(len(live.rows()))
        raise ConnectionError

    waking = replace(live, deps=replace(live.deps, wake=wake))
    live.camper()
    assert waking.detect().counts["intents"] == 0
    live.site.open("100", "101", july(3))
    assert waking.checked_again().outcome == "success"
    assert seen == [1]
