"""A3 and the time of a run: no target is checked twice at once, and an older picture never overwrites a newer one.

What happens "meanwhile" happens in the booking site's hook: between the request and its answer.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import true

from chalicelib.db.tables import unique_targets
from chalicelib.history import RunResult
from sandbox.campgrounds import Campground
from sandbox.faults import Fault
from tests.support.live import SITES, Live

NIGHTS = [date(2027, 7, 9), date(2027, 7, 10)]


def meanwhile(live: Live, do: Callable[[], object]) -> None:
    """Do this once, when the next request has arrived and is not answered yet."""

    def hook(_: Any) -> None:
        live.site.on_request = None
        do()

    live.site.on_request = hook


def test_a_second_process_leaves_a_target_that_is_being_checked_alone(live: Live) -> None:
    live.camper()
    live.site.open("100", "103", NIGHTS)
    second: list[RunResult] = []
    with live.elsewhere() as other:
        meanwhile(live, lambda: second.append(other.detect()))
        first = live.detect()
    assert (first.counts["targets_checked"], second[0].counts["targets_checked"]) == (1, 0)
    assert live.asked() == ["100 2027-07", "100 campsites"]
    assert len(live.rows()) == 1


def test_a_second_run_of_the_same_process_leaves_it_alone_too(live: Live) -> None:
    live.camper()
    second: list[RunResult] = []
    meanwhile(live, lambda: second.append(live.detect()))
    live.detect()
    assert second[0].counts["targets_checked"] == 0
    assert live.asked() == ["100 2027-07", "100 campsites"]


def test_in_one_process_a_target_in_flight_is_left_alone_even_when_its_lease_is_over(live: Live) -> None:
    live.camper()
    second: list[RunResult] = []

    def later() -> None:
        live.clock.advance(minutes=10)
        second.append(live.detect())

    meanwhile(live, later)
    live.detect()
    assert (second[0].counts["targets_due"], second[0].counts["targets_skipped"]) == (1, 1)
    assert live.asked().count("100 2027-07") == 1


def test_two_runs_that_start_at_once_make_one_checks_requests_and_one_intent(live: Live) -> None:
    live.camper()
    live.site.open("100", "103", NIGHTS)
    barrier = Barrier(2)

    def run(live: Live) -> RunResult:
        barrier.wait(10)
        return live.detect()

    with live.elsewhere() as one, live.elsewhere() as two, ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(run, [one, two]))
    assert sorted(live.asked()) == ["100 2027-07", "100 campsites"]
    assert sum(run.counts["targets_checked"] for run in runs) == 1
    assert sum(run.counts["openings"] for run in runs) == 2
    assert len(live.rows()) == 1


def test_a_lease_ends_by_itself_and_is_taken_over(live: Live) -> None:
    """As a killed process leaves it: nobody gives it back."""
    live.camper()
    lease_until = live.clock() + timedelta(seconds=40)
    live.set_rows(unique_targets, true(), lease_token=uuid4(), lease_until=lease_until)
    assert live.detect().counts["targets_due"] == 0
    live.clock.now = lease_until
    assert live.detect().counts["targets_checked"] == 1
    assert live.target()["lease_until"] is None


def test_a_lease_lasts_as_long_as_the_check_that_holds_it_can(live: Live) -> None:
    live.camper(dates=(date(2027, 7, 1), date(2027, 9, 1)))
    leases: list[Any] = []
    meanwhile(live, lambda: leases.append(live.target()["lease_until"] - live.clock()))
    live.detect(seconds=600)
    fetch = timedelta(seconds=live.deps.settings.fetch_deadline)
    assert leases[0] >= 3 * fetch  # two months and the metadata


def test_the_older_picture_of_a_check_that_lost_its_lease_is_discarded(live: Live) -> None:
    live.camper()
    live.detect()
    live.clock.advance(minutes=1)
    second: list[RunResult] = []
    with live.elsewhere() as other:

        def overtake() -> None:
            live.clock.advance(minutes=5)
            live.site.open("100", "103", NIGHTS)
            second.append(other.detect())
            live.site.take("100", "103", NIGHTS)  # the slow answer is to show what was before

        meanwhile(live, overtake)
        first = live.detect()
    assert (first.counts["targets_checked"], first.counts["targets_skipped"]) == (0, 1)
    assert second[0].counts["intents"] == 1
    assert live.results() == {"103": ["2027-07-09", "2027-07-10"]}
    assert live.target()["last_checked_at"] == live.clock()


def test_no_opening_is_raised_twice_by_a_check_that_was_overtaken(live: Live) -> None:
    live.camper()
    live.detect()
    live.clock.advance(minutes=1)
    live.site.open("100", "103", NIGHTS)
    with live.elsewhere() as other:

        def overtake() -> None:
            live.clock.advance(minutes=5)
            other.detect()

        meanwhile(live, overtake)
        live.detect()
    assert len(live.rows()) == 1
    live.checked_again()
    assert len(live.rows()) == 1


def test_a_picture_older_than_the_stored_one_is_discarded_whatever_the_lease_says(live: Live) -> None:
    live.camper()
    live.site.open("100", "103", NIGHTS)
    newer = live.clock() + timedelta(seconds=1)
    meanwhile(live, lambda: live.set_rows(unique_targets, true(), last_checked_at=newer))
    run = live.detect()
    assert run.counts["targets_checked"] == 0
    assert (live.results(), live.rows(), live.target()["last_checked_at"]) == ({}, [], newer)


def test_an_overtaken_checks_failure_is_not_held_against_the_target(live: Live) -> None:
    live.camper()
    with live.elsewhere() as other:

        def overtake() -> None:
            live.clock.advance(minutes=5)
            other.detect()
            live.site.misbehave(Fault.TRUNCATED, on="availability")

        meanwhile(live, overtake)
        live.detect()
    assert (live.target()["failures"], live.target()["retry_at"]) == (0, None)


# --- the time of a run -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "checked"), [(5, 0), (9.9, 0), (10, 1)])
def test_a_run_short_of_time_begins_no_check(live: Live, seconds: float, checked: int) -> None:
    assert live.deps.settings.fetch_deadline == 10
    live.camper()
    run = live.detect(seconds=seconds)
    assert (run.counts["targets_due"], run.counts["targets_checked"]) == (1, checked)
    assert bool(live.asked()) is bool(checked)
    assert (live.target()["last_attempt_at"] is None) is (checked == 0)


def test_a_run_short_of_time_makes_no_probe_either(live: Live) -> None:
    live.camper()
    live.site.misbehave(Fault.STATUS, on="availability", status=429)
    live.detect()
    live.clock.advance(minutes=1)
    live.site.requests.clear()
    live.detect(seconds=5)
    assert live.asked() == []


def test_a_run_that_has_spent_its_time_begins_no_further_check(live: Live) -> None:
    live.site.add_campground(Campground("200", "Lower Pines", SITES))
    live.site.add_campground(Campground("300", "North Pines", SITES))
    user_id, _ = live.camper()
    live.scan(user_id, campground="200")
    live.scan(user_id, campground="300")
    live.site.on_request = lambda _: live.clock.advance(seconds=30)
    run = live.detect(seconds=60)
    assert run.counts["targets_due"] == 3
    assert run.counts["targets_skipped"] >= 1
    assert sum(run.counts[f"targets_{how}"] for how in ("checked", "failed", "skipped")) == 3
    live.site.on_request = None
    live.checked_again()
    assert {asked.partition(" ")[0] for asked in live.asked()} == {"100", "200", "300"}


def test_a_target_whose_last_night_passes_during_the_run_is_left_out(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    live.clock.now = live.clock.now.replace(day=30, hour=23, minute=59, second=59)
    dates = (date(2027, 6, 30), date(2027, 7, 1))
    user_id, _ = live.camper(dates=dates)
    for campground in ("200", "300", "400", "500"):
        live.site.add_campground(Campground(campground, campground, SITES))
        live.scan(user_id, campground=campground, dates=dates)
    live.site.on_request = lambda _: live.clock.advance(seconds=1)
    run = live.detect()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    assert run.counts["targets_skipped"] >= 2
    assert {asked.partition(" ")[2] for asked in live.asked()} <= {"2027-06", "campsites"}


def test_every_due_target_is_checked_failed_or_skipped(live: Live) -> None:
    user_id, _ = live.camper()
    for campground in ("200", "300"):
        live.site.add_campground(Campground(campground, campground, SITES))
        live.scan(user_id, campground=campground)
    live.site.misbehave(Fault.TRUNCATED, on="availability", campground_id="200")
    run = live.with_settings(recreation_gov_per_minute=2).detect()
    counts = run.counts
    assert counts["targets_due"] == 3
    assert counts["targets_checked"] + counts["targets_failed"] + counts["targets_skipped"] == 3
    assert counts["requests"] == len(live.asked()) == 2
