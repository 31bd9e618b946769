"""A5: what goes wrong at the booking site changes nothing that is stored; silence is neither open nor closed."""

from datetime import date
from typing import Any

import pytest
from sqlalchemy import select

from chalicelib.db.tables import scan_results
from sandbox.campgrounds import Campground, Campsite
from sandbox.faults import Fault
from tests.support.live import SITES, Live

NIGHTS = [date(2027, 7, 9), date(2027, 7, 10)]
WORDS = [night.isoformat() for night in NIGHTS]
AUGUST = date(2027, 8, 3)
BOTH = (date(2027, 7, 1), date(2027, 9, 1))


# --- a failure -----------------------------------------------------------------------------------------------

FAILURES: list[tuple[Fault, dict[str, Any], str]] = [
    (Fault.RESET, {}, "transport_error"),
    (Fault.DROP_BEFORE_HEADERS, {}, "transport_error"),
    (Fault.DROP_AFTER_HEADERS, {}, "transport_error"),
    (Fault.DROP_MIDWAY, {}, "transport_error"),
    (Fault.STATUS, {"status": 429}, "rate_limited"),
    (Fault.STATUS_HTML, {"status": 403}, "blocked"),
    (Fault.CHALLENGE, {}, "not_json"),
    (Fault.STATUS, {"status": 500}, "server_error"),
    (Fault.STATUS_HTML, {"status": 503}, "server_error"),
    (Fault.STATUS, {"status": 400}, "client_error"),
    (Fault.STATUS, {"status": 302}, "client_error"),
    (Fault.STATUS, {"status": 404}, "not_found"),
    (Fault.STATUS_HTML, {"status": 200}, "not_json"),
    (Fault.TRUNCATED, {}, "not_json"),
    (Fault.EMPTY_OBJECT, {}, "blank_answer"),
    (Fault.COUNT_ZERO, {}, "blank_answer"),
    (Fault.NO_NIGHTS, {}, "blank_answer"),
]


@pytest.mark.parametrize(("fault", "how", "category"), FAILURES)
def test_a_failure_changes_neither_results_nor_last_check_and_is_recorded(
    live: Live, fault: Fault, how: dict[str, Any], category: str
) -> None:
    live.camper()
    live.site.open("100", "101", NIGHTS)
    live.detect()
    before, results = live.target(), live.results()
    live.site.take("100", "101", NIGHTS)
    live.site.open("100", "102", NIGHTS)
    live.site.misbehave(fault, on="availability", times=None, **how)
    run = live.checked_again()
    assert (run.outcome, run.counts["targets_failed"], run.counts["intents"]) == ("degraded", 1, 0)
    assert (live.results(), len(live.rows())) == (results, 1)
    after = live.target()
    assert after["last_checked_at"] == before["last_checked_at"]
    assert (after["error_category"], after["failures"], after["failing_since"]) == (category, 1, live.clock())
    assert [item.error_category for item in run.history] == [category]

    live.site.behave()
    live.clock.advance(minutes=2)
    assert live.detect().counts["intents"] == 1
    after = live.target()
    assert live.results() == {"102": WORDS}
    assert (after["error_category"], after["failures"], after["failing_since"], after["retry_at"]) == (
        None,
        0,
        None,
        None,
    )


def test_a_target_needs_all_its_months(live: Live) -> None:
    live.camper(dates=BOTH)
    live.site.open("100", "101", NIGHTS)
    live.site.misbehave(Fault.TRUNCATED, on="availability")
    assert live.detect().counts["targets_failed"] == 1
    assert (live.results(), live.target()["last_checked_at"]) == ({}, None)


def test_a_failing_month_concerns_the_targets_that_need_it_alone(live: Live) -> None:
    user_id, _ = live.camper(dates=(date(2027, 8, 1), date(2027, 8, 9)))
    live.site.misbehave(Fault.TRUNCATED, on="availability")  # August, the only one asked for yet
    live.detect()
    live.scan(user_id, dates=(date(2027, 7, 1), date(2027, 7, 9)))
    run = live.detect()
    assert (run.counts["targets_due"], run.counts["targets_checked"]) == (1, 1)


# --- silence -------------------------------------------------------------------------------------------------

SILENCE: list[tuple[Fault, dict[str, Any]]] = [
    (Fault.COUNT_ZERO, {}),
    (Fault.EMPTY_OBJECT, {}),
    (Fault.NO_NIGHTS, {}),
    (Fault.NULL_NIGHTS, {"campsite_id": "101"}),
    (Fault.NULL_STATUS, {"campsite_id": "101"}),
]
"""What the next month asked for, July, looks like when it says nothing of campsite 101."""


@pytest.mark.parametrize(("fault", "how"), SILENCE)
def test_a_hiccup_neither_closes_an_opening_nor_raises_it_again(live: Live, fault: Fault, how: dict[str, Any]) -> None:
    live.camper(dates=BOTH)
    live.site.open("100", "101", [*NIGHTS, AUGUST])
    live.detect()
    stored = live.results()
    live.site.misbehave(fault, on="availability", **how)
    run = live.checked_again()
    assert (run.outcome, run.counts["targets_checked"], run.counts["openings"]) == ("success", 1, 0)
    assert live.results() == stored
    for _ in range(2):
        assert live.checked_again().counts["openings"] == 0
    assert (live.results(), len(live.rows())) == (stored, 1)


@pytest.mark.parametrize(("fault", "how"), SILENCE)
def test_a_hiccup_does_not_raise_again_what_a_filter_needs_metadata_for(
    live: Live, fault: Fault, how: dict[str, Any]
) -> None:
    accessible = (Campsite("101", "001", accessible=True), *SITES[1:])
    live.site.add_campground(Campground("100", "Upper Pines", accessible))
    live.camper(dates=BOTH, require_accessible=True)
    live.site.open("100", "101", NIGHTS)
    live.detect()
    live.site.misbehave(fault, on="availability", **how)
    for _ in range(3):
        live.checked_again()
    assert len(live.rows()) == 1
    with live.deps.database.reading() as connection:
        assert connection.execute(select(scan_results.c.campsite)).scalar_one()["accessible"] is True


def test_a_blank_month_is_unknown_for_its_nights_alone(live: Live) -> None:
    live.camper(dates=BOTH)
    live.site.open("100", "101", [*NIGHTS, AUGUST])
    live.detect()
    live.site.take("100", "101", AUGUST)
    live.site.open("100", "102", AUGUST)
    live.site.misbehave(Fault.COUNT_ZERO, on="availability")
    assert live.checked_again().counts["openings"] == 1
    assert live.results() == {"101": WORDS, "102": [AUGUST.isoformat()]}


@pytest.mark.parametrize(("hours", "kept"), [(23, True), (25, False)])
def test_silence_keeps_what_is_stored_for_24_hours_at_most(live: Live, hours: int, kept: bool) -> None:
    live.camper(dates=BOTH)
    live.site.open("100", "101", NIGHTS)
    live.detect()
    live.site.misbehave(Fault.NULL_NIGHTS, on="availability", campsite_id="101", times=3)
    live.checked_again()  # its August is null, and says nothing that matters
    live.clock.advance(hours=hours)
    live.site.behave()
    live.site.misbehave(Fault.NULL_NIGHTS, on="availability", campsite_id="101")
    live.detect()
    assert ("101" in live.results()) is kept
    assert live.checked_again().counts["openings"] == (0 if kept else 2)


def test_what_was_taken_while_a_month_was_silent_closes_when_it_speaks_again(live: Live) -> None:
    live.camper(dates=BOTH)
    live.site.open("100", "101", NIGHTS)
    live.detect()
    live.site.misbehave(Fault.COUNT_ZERO, on="availability")
    live.checked_again()
    live.site.take("100", "101", NIGHTS)
    live.checked_again()
    assert live.results() == {}


@pytest.mark.parametrize(("fault", "how"), SILENCE)
def test_an_unseen_night_is_not_new_to_a_scan_that_joins_until_it_is_seen(
    live: Live, fault: Fault, how: dict[str, Any]
) -> None:
    user_id, first = live.camper(dates=BOTH)
    live.site.open("100", "101", NIGHTS)
    live.detect()
    second = live.scan(user_id, dates=BOTH, mode="direct")
    live.site.misbehave(fault, on="availability", **how)
    live.checked_again()
    assert [row["scan_id"] for row in live.rows()] == [first]
    run = live.checked_again()
    assert (run.counts["openings"], run.counts["intents"]) == (0, 1)
    assert [row["scan_id"] for row in live.rows()] == [first, second]
    live.checked_again()
    assert len(live.rows()) == 2


def test_a_scan_that_joined_before_the_silence_is_not_told_again_after_it(live: Live) -> None:
    user_id, _ = live.camper(dates=BOTH)
    live.site.open("100", "101", NIGHTS)
    live.detect()
    live.scan(user_id, dates=BOTH, mode="direct")
    live.checked_again()
    live.site.misbehave(Fault.COUNT_ZERO, on="availability")
    for _ in range(3):
        live.checked_again()
    assert len(live.rows()) == 2


def test_a_scan_that_joined_in_silence_is_told_after_a_long_one(live: Live) -> None:
    user_id, _ = live.camper(dates=BOTH)
    live.site.open("100", "101", NIGHTS)
    live.detect()
    live.site.misbehave(Fault.NULL_NIGHTS, on="availability", campsite_id="101", times=6)
    live.checked_again()
    second = live.scan(user_id, dates=BOTH, mode="direct")
    live.checked_again()
    live.checked_again()
    assert len(live.rows()) == 1
    live.checked_again()
    assert live.rows()[1]["scan_id"] == second


# --- odd records in a good answer ----------------------------------------------------------------------------

ODD: list[tuple[Fault, dict[str, Any], list[str]]] = [
    # what is wrong with campsite 101, and whose nights are found all the same
    (Fault.NULL_CAMPSITE, {}, ["102"]),
    (Fault.NULL_NIGHTS, {}, ["102"]),
    (Fault.NULL_STATUS, {}, ["102"]),
    (Fault.UNKNOWN_STATUS, {}, ["102"]),
    (Fault.MISSING_CAMPSITE, {}, ["102"]),
    (Fault.NULL_TYPE, {}, ["101", "102"]),
    (Fault.INT_IDS, {}, ["101", "102"]),
    (Fault.NULL_STATUS, {"night": NIGHTS[0]}, ["101", "102"]),
    (Fault.UNKNOWN_STATUS, {"night": NIGHTS[0]}, ["101", "102"]),
    (Fault.MISSING_NIGHTS, {"night": NIGHTS[0]}, ["101", "102"]),
]


@pytest.mark.parametrize(("fault", "how", "found"), ODD)
def test_one_odd_record_does_not_lose_the_rest(live: Live, fault: Fault, how: dict[str, Any], found: list[str]) -> None:
    live.camper(mode="direct")
    live.site.open("100", "101", NIGHTS)
    live.site.open("100", "102", NIGHTS)
    live.site.misbehave(fault, on="availability", campsite_id="101", **how)
    run = live.detect()
    assert (run.outcome, run.counts["targets_checked"]) == ("success", 1)
    assert sorted(live.results()) == [row["delivery_key"] for row in live.rows()] == found
    if "night" in how:
        assert live.results()["101"] == WORDS[1:]


def test_a_site_without_metadata_is_found(live: Live) -> None:
    live.camper()
    live.site.open("100", "101", NIGHTS)
    live.site.misbehave(Fault.MISSING_CAMPSITE, on="campsites", campsite_id="101")
    live.detect()
    assert live.results() == {"101": WORDS}
