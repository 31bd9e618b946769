"""A2: one fetch serves all and the site is spared: budget, documents, breaker, and each target's own backoff."""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from threading import Event
from typing import Any

import pytest
from sqlalchemy import RowMapping, select

from chalicelib.accounts import users
from chalicelib.db.engine import Database
from chalicelib.db.tables import campgrounds, provider_states
from chalicelib.detection import detect
from chalicelib.history import RunResult, RuntimeState
from chalicelib.providers.contract import CheckError, MonthDocument, ProviderError
from chalicelib.scans import views
from chalicelib.stays.campsites import Campsite
from chalicelib.stays.openings import MonthAnswer, SiteMonth
from sandbox.campgrounds import Campground
from sandbox.faults import Fault
from tests.support.live import JULY, SITES, START, Live
from tests.support.rows import add_scan, add_user, make_request
from tests.support.standins import SITE, HandClock, StandInProvider, World, make_settings, make_world

MINUTE = timedelta(minutes=1)
LONG = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""Hours of runs, about time and not about the database: the short tests beside them run on both."""


@dataclass
class Site(StandInProvider):
    """Answers every month with one campsite that is taken; notes when it was asked for what."""

    clock: HandClock = field(default_factory=HandClock)
    broken: dict[str, CheckError] = field(default_factory=dict[str, CheckError])
    retry_after: timedelta | None = None
    nights: frozenset[date] = frozenset()
    log: list[tuple[datetime, str]] = field(default_factory=list[tuple[datetime, str]])
    metadata: int = 0

    def availability(self, campground_id: str, month: date) -> MonthDocument:
        self.log.append((self.clock(), campground_id))
        self._ask(campground_id)
        if campground_id in self.broken:
            raise ProviderError(self.broken[campground_id], retry_after=self.retry_after)
        nights = frozenset(night for night in self.nights if night.replace(day=1) == month)
        answer = MonthAnswer(month, {"1": SiteMonth(Campsite("1"), nights)})
        return MonthDocument(repr(sorted(nights)), lambda: answer)

    def campsites(self, campground_id: str) -> Any:
        self.metadata += 1
        return super().campsites(campground_id)

    def times(self, campground_id: str) -> list[datetime]:
        return [at for at, asked in self.log if asked == campground_id]


@dataclass(frozen=True)
class Paced:
    """A world whose booking site answers at once, and its runs."""

    world: World
    site: Site

    def watch(self, *campgrounds: str, months: int = 1) -> None:
        user_id = add_user(self.world.deps, f"{campgrounds[0]}@example.org")
        for campground in campgrounds:
            self.site.names[campground] = campground
            dates = (date(2027, 7, 2), date(2027, 7 + months, 1))
            add_scan(self.world.deps, user_id, make_request(campground=campground, dates=dates))

    def detect(self) -> RunResult:
        return detect.run(self.world.deps, self.world.clock() + MINUTE)

    def every_minute(self, minutes: int) -> list[RunResult]:
        runs: list[RunResult] = []
        for _ in range(minutes):
            runs.append(self.detect())
            self.world.clock.advance(minutes=1)
        return runs

    def state(self) -> RowMapping:
        with self.world.deps.database.reading() as connection:
            return connection.execute(select(provider_states)).mappings().one()


@pytest.fixture
def make_paced(database: Database) -> Callable[..., Paced]:
    def make(**settings: Any) -> Paced:
        world = make_world(database)
        site = Site(clock=world.clock)
        deps = replace(world.deps, settings=make_settings(settings), providers={"recreation_gov": site})
        return Paced(replace(world, deps=deps), site)

    return make


# --- the budget --------------------------------------------------------------------------------------------


def test_the_budget_is_a_bucket_of_one_minutes_capacity(make_paced: Callable[..., Paced]) -> None:
    paced = make_paced(recreation_gov_per_minute=6)
    paced.watch(*"abcdefghijklmnop")
    paced.world.clock.advance(hours=5)  # saves nothing up
    requests: list[int] = []
    for seconds in (0, 0, 10, 20, 30, 600):
        paced.world.clock.advance(seconds=seconds)
        requests.append(paced.detect().counts["requests"])
    assert requests == [6, 0, 1, 2, 3, 6]
    assert len(paced.site.asked) - 16 == sum(requests)  # 16: the look-ups when the scans were added


def test_two_processes_share_the_budget(make_paced: Callable[..., Paced]) -> None:
    paced = make_paced(recreation_gov_per_minute=6)
    paced.watch(*"abcdefghij")
    other = replace(paced.world.deps, runtime=RuntimeState())
    second: list[RunResult] = []

    def while_asked() -> None:
        """The second run comes in the middle of the first."""
        paced.site.while_asked = lambda: None
        second.append(detect.run(other, paced.world.clock() + MINUTE))

    paced.site.while_asked = while_asked
    first = paced.detect()
    assert first.counts["requests"] + second[0].counts["requests"] == 6


def test_what_the_budget_does_not_allow_stays_due_and_comes_first(make_paced: Callable[..., Paced]) -> None:
    paced = make_paced(recreation_gov_per_minute=4)
    paced.watch("a", "b", "c")
    first = paced.detect()
    assert (first.outcome, first.counts["targets_due"]) == ("success", 3)
    assert first.counts["targets_checked"] + first.counts["targets_skipped"] == 3
    missed = {"a", "b", "c"} - {campground for _, campground in paced.site.log}
    assert len(missed) == first.counts["targets_skipped"] == 1
    paced.site.log.clear()
    paced.world.clock.advance(minutes=1)
    paced.detect()
    assert {paced.site.log[0][1]} == missed


@LONG
def test_nobody_starves_when_more_is_watched_than_the_budget_allows(make_paced: Callable[..., Paced]) -> None:
    paced = make_paced(recreation_gov_per_minute=10)
    names = [f"c{number}" for number in range(30)]
    paced.watch(*names)
    runs = paced.every_minute(60)
    checks = Counter(campground for _, campground in paced.site.log)
    assert paced.site.metadata == 30  # once each: it is less than a day old
    assert sum(run.counts["requests"] for run in runs) == 600
    assert {checks[name] for name in names} == {19}  # (600 - 30) / 30
    for name in names:
        times = paced.site.times(name)
        assert max(after - before for before, after in pairwise(times)) <= 7 * MINUTE


@LONG
def test_a_range_of_more_months_than_the_bucket_holds_is_checked_beside_the_others(
    make_paced: Callable[..., Paced],
) -> None:
    paced = make_paced(recreation_gov_per_minute=2)
    paced.watch("long", months=4)
    paced.watch("short")
    paced.every_minute(30)
    assert len(paced.site.times("long")) >= 4 * 6
    assert len(paced.site.times("short")) >= 6
    assert len(paced.site.log) + paced.site.metadata <= 2 * 30 + 4


def test_metadata_gets_its_turn_at_one_request_a_minute(make_paced: Callable[..., Paced]) -> None:
    paced = make_paced(recreation_gov_per_minute=1)
    paced.watch("a")
    checked = [run.counts["targets_checked"] for run in paced.every_minute(5)]
    assert paced.site.metadata == 1
    assert checked.count(1) == 4
    assert checked[0] == 1  # and the check does not wait for it


# --- documents ---------------------------------------------------------------------------------------------


def test_one_document_serves_all_targets_of_a_run(live: Live) -> None:
    user_id, _ = live.camper(dates=(date(2027, 7, 1), date(2027, 8, 3)))
    live.scan(user_id, dates=(date(2027, 7, 5), date(2027, 7, 9)))
    live.scan(user_id, dates=(date(2027, 7, 20), date(2027, 8, 9)))
    run = live.detect()
    assert sorted(live.asked()) == ["100 2027-07", "100 2027-08", "100 campsites"]
    assert (run.counts["targets_checked"], run.counts["requests"]) == (3, 3)


def test_many_scans_of_one_target_cost_one_check(live: Live) -> None:
    for number in range(4):
        live.camper(email=f"u{number}@example.org")
    assert live.detect().counts["targets_due"] == 1
    assert live.asked() == ["100 2027-07", "100 campsites"]


def test_only_months_of_nights_to_come_are_asked_for(live: Live) -> None:
    live.camper(dates=(date(2027, 6, 20), date(2027, 8, 1)))
    live.clock.now = datetime.fromisoformat("2027-07-02T00:00:00+00:00")
    live.detect()
    assert live.asked() == ["100 2027-07", "100 campsites"]


def test_metadata_is_asked_for_when_missing_or_a_day_old(live: Live) -> None:
    live.camper()
    asked: list[str] = []
    for minutes in (0, 1, 23 * 60, 60, 1):
        live.clock.advance(minutes=minutes)
        live.site.requests.clear()
        live.detect()
        asked.append(" ".join(live.asked()).replace("100 ", ""))
    assert [("campsites" in words, "2027-07" in words) for words in asked] == [
        (True, True),
        (False, True),
        (False, True),
        (True, True),
        (False, True),
    ]


@pytest.mark.parametrize("fault", [Fault.STATUS_HTML, Fault.TRUNCATED, Fault.RESET, Fault.CHALLENGE])
def test_a_check_does_without_metadata_and_asks_again_later(live: Live, fault: Fault) -> None:
    live.camper()
    live.site.misbehave(fault, on="campsites", status=404, times=None)
    run = live.detect()
    assert (run.counts["targets_checked"], run.counts["targets_failed"]) == (1, 0)
    live.site.behave()
    for _ in range(30):
        live.checked_again()
    with live.deps.database.reading() as connection:
        assert connection.execute(select(campgrounds.c.campsites_fetched_at)).scalar_one()
    assert live.asked().count("100 campsites") == 2


# --- the breaker -------------------------------------------------------------------------------------------

FEEDING = [
    # what the site answers to six months in a row, how many are asked for before the breaker opens
    (CheckError.RATE_LIMITED, 1),
    (CheckError.BLOCKED, 1),
    (CheckError.SERVER_ERROR, 3),
    (CheckError.TIMEOUT, 3),
    (CheckError.TRANSPORT_ERROR, None),
    (CheckError.CLIENT_ERROR, None),
    (CheckError.NOT_FOUND, None),
    (CheckError.NOT_JSON, None),
    (CheckError.MALFORMED, None),
]


@pytest.mark.parametrize(("category", "requests"), FEEDING)
def test_only_403_429_5xx_and_timeouts_feed_the_breaker(
    make_paced: Callable[..., Paced], category: CheckError, requests: int | None
) -> None:
    paced = make_paced(recreation_gov_per_minute=100)
    paced.watch("a", months=5)
    paced.site.broken["a"] = category
    run = paced.detect()
    assert (run.outcome, run.counts["targets_failed"]) == ("degraded", 1)
    assert run.counts["requests"] == len(paced.site.log) == (requests or 5)
    state = paced.state()
    now = paced.world.clock()
    opened = (now + MINUTE, now, category.value)
    assert (state["open_until"], state["unavailable_since"], state["error_category"]) == (
        opened if requests else (None, None, None)
    )


def test_a_blank_answer_does_not_feed_the_breaker(live: Live) -> None:
    live.camper(dates=(date(2027, 7, 1), date(2027, 12, 1)))
    live.site.misbehave(Fault.COUNT_ZERO, on="availability", times=None)
    assert live.detect().counts["targets_failed"] == 1
    assert live.asked()[:5] == [f"100 2027-{month:02}" for month in range(7, 12)]
    assert _state(live)["open_until"] is None


def _state(live: Live) -> RowMapping:
    with live.deps.database.reading() as connection:
        return connection.execute(select(provider_states)).mappings().one()


def test_failures_count_when_they_come_in_a_row(live: Live) -> None:
    live.camper(dates=(date(2027, 7, 1), date(2027, 10, 1)))
    live.site.misbehave(Fault.STATUS, on="availability", times=2)  # and the third month is well
    live.detect()
    live.site.misbehave(Fault.STATUS, on="availability", times=2)
    live.checked_again()
    assert (_state(live)["open_until"], len(live.asked())) == (None, 6)
    live.clock.advance(minutes=5)
    live.site.misbehave(Fault.STATUS, on="availability", times=None)
    live.detect()
    assert _state(live)["open_until"] == live.clock() + MINUTE


@pytest.mark.parametrize("fault", [Fault.STATUS, Fault.STATUS_HTML])
@pytest.mark.parametrize("status", [403, 429, 503])
def test_retry_after_is_respected(live: Live, fault: Fault, status: int) -> None:
    live.camper(dates=(date(2027, 7, 1), date(2027, 9, 1)))
    live.site.misbehave(fault, on="availability", status=status, retry_after=300)
    live.detect()
    for _ in range(4):
        live.checked_again()
    assert live.asked() == ["100 2027-07"]
    live.checked_again()
    assert len(live.asked()) > 1


def test_retry_after_never_shortens_the_breaker(live: Live) -> None:
    live.camper()
    live.site.misbehave(Fault.STATUS, on="availability", status=429, retry_after=5)
    live.detect()
    assert _state(live)["open_until"] == START + MINUTE


@LONG
def test_the_breaker_doubles_from_60_seconds_to_30_minutes_with_one_request_each(
    make_paced: Callable[..., Paced],
) -> None:
    paced = make_paced()
    paced.watch("a", "b", "c", months=3)
    paced.site.trouble = CheckError.RATE_LIMITED
    asked: list[datetime] = []
    for _ in range(120):
        run = paced.detect()
        assert run.outcome == "degraded"
        assert run.counts["requests"] <= 1
        paced.world.clock.advance(minutes=1)
    asked = [at for at, _ in paced.site.log]
    gaps = [(after - before) // MINUTE for before, after in pairwise(asked)]
    assert gaps == [1, 2, 4, 8, 16, 30, 30]


def test_a_half_open_breaker_lets_one_request_through_over_all_processes(live: Live) -> None:
    live.camper(dates=(date(2027, 7, 1), date(2027, 9, 1)))
    live.site.misbehave(Fault.STATUS, on="availability", status=429, times=2)
    live.detect()
    live.clock.advance(minutes=1)
    live.site.requests.clear()
    runs: list[RunResult] = []
    with live.elsewhere() as other:

        def second(_: Any) -> None:
            live.site.on_request = None
            runs.append(other.detect())

        live.site.on_request = second
        runs.append(live.detect())
    assert live.asked() == ["100 2027-07"]
    assert [run.counts["requests"] for run in runs] == [0, 1]
    assert [run.outcome for run in runs] == ["degraded", "degraded"]


@pytest.mark.parametrize("end", [None, Fault.COUNT_ZERO, Fault.TRUNCATED])
def test_a_probe_that_is_answered_closes_the_breaker_be_the_answer_of_use_or_not(live: Live, end: Fault | None) -> None:
    live.camper(dates=(date(2027, 7, 1), date(2027, 9, 1)))
    live.site.misbehave(Fault.STATUS, on="availability", status=429)
    live.detect()
    if end:
        live.site.misbehave(end, on="availability")
    run = live.checked_again()
    assert (_state(live)["open_until"], _state(live)["unavailable_since"]) == (None, None)
    assert run.counts["targets_checked" if end is not Fault.TRUNCATED else "targets_failed"] == 1
    assert live.asked().count("100 2027-07") == 2  # the probe's answer serves the check as well


def test_a_probe_that_does_not_get_through_leaves_the_breaker_half_open_for_the_next(live: Live) -> None:
    live.camper()
    live.site.misbehave(Fault.STATUS, on="availability", status=429)
    live.detect()
    live.site.misbehave(Fault.RESET, on="availability")
    assert live.checked_again().counts["targets_checked"] == 0
    assert live.checked_again().counts["targets_checked"] == 1


@LONG
def test_one_campground_that_always_fails_does_not_keep_the_breaker_open_for_all(
    make_paced: Callable[..., Paced],
) -> None:
    """The probe is the most urgent target's; were it the same one each time, one bad campground would stop the rest."""
    paced = make_paced(recreation_gov_per_minute=100)
    paced.watch("bad", "good")
    paced.site.broken["bad"] = CheckError.BLOCKED
    paced.every_minute(30)
    assert len(paced.site.times("good")) >= 10


def test_trouble_is_told_once_when_it_begins_and_once_when_it_ends(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="chalicelib")
    _, scan_id = live.camper()
    live.detect()
    live.clock.advance(minutes=1)
    began = live.clock()
    live.site.misbehave(Fault.STATUS, on="availability", status=429, times=None)
    for _ in range(10):
        live.detect()
        live.clock.advance(minutes=1)
        standing = views.show(live.deps, scan_id, by=_owner(live)).scan.standing
        assert (standing.word, standing.unavailable_since, standing.error_category) == (
            "unavailable",
            began,
            "rate_limited",
        )
    live.site.behave()
    for _ in range(20):
        live.checked_again()
    told = [(record.levelname, getattr(record, "provider", None)) for record in caplog.records]
    assert [level for level, provider in told if provider] == ["WARNING", "INFO"]
    assert views.show(live.deps, scan_id, by=_owner(live)).scan.standing.unavailable_since is None


def _owner(live: Live) -> Any:
    return users.find(live.deps, "ann@example.org").id


# --- what does not concern the others ----------------------------------------------------------------------


@LONG
def test_a_failing_target_is_backed_off_by_itself_while_others_go_on(make_paced: Callable[..., Paced]) -> None:
    paced = make_paced(recreation_gov_per_minute=100)
    paced.watch("bad", "good")
    paced.site.broken["bad"] = CheckError.NOT_FOUND
    paced.every_minute(125)
    times = paced.site.times("bad")
    gaps = [(after - before) // MINUTE for before, after in pairwise(times)]
    assert gaps == [1, 2, 4, 8, 16, 30, 30, 30]
    assert len(paced.site.times("good")) == 125


def test_a_success_ends_a_targets_backoff(make_paced: Callable[..., Paced]) -> None:
    paced = make_paced()
    paced.watch("a")
    paced.site.broken["a"] = CheckError.NOT_FOUND
    paced.every_minute(8)
    paced.site.broken.clear()
    paced.every_minute(8)
    paced.site.log.clear()
    paced.site.broken["a"] = CheckError.NOT_FOUND
    paced.every_minute(3)
    assert len(paced.site.log) == 2


@pytest.mark.parametrize("category", [CheckError.RATE_LIMITED, CheckError.NOT_FOUND, CheckError.TRANSPORT_ERROR])
def test_one_providers_trouble_does_not_concern_another(database: Database, category: CheckError) -> None:
    well, ill = _two_providers(database)
    ill.site.trouble = category
    for run in well.every_minute(3):
        assert run.counts["targets_checked"] == 1
    assert len(well.site.log) == 3


def test_a_provider_that_is_slow_does_not_delay_another(database: Database) -> None:
    well, slow = _two_providers(database)
    recorded = Event()
    in_time: list[bool] = []
    slow.site.while_asked = lambda: in_time.append(recorded.wait(10))
    well.site.nights = frozenset([date(2027, 8, 5)])
    detect.run(replace(well.world.deps, wake=recorded.set), well.world.clock() + MINUTE)
    assert in_time[0]


def _two_providers(database: Database) -> tuple[Paced, Paced]:
    """The first answers; both have a target, the second's is the more urgent."""
    world = make_world(database)
    well = Site(clock=world.clock, names={"w": "W"})
    ill = Site(clock=world.clock, names={"i": "I"}, info=replace(SITE, id="sandbox", name="Ill"))
    deps = replace(world.deps, providers={"sandbox": ill, "recreation_gov": well})
    user_id = add_user(deps)
    add_scan(deps, user_id, make_request(campground="w", dates=(date(2027, 8, 1), date(2027, 8, 9))))
    add_scan(
        deps,
        user_id,
        replace(make_request(campground="i", dates=(date(2027, 7, 1), date(2027, 7, 9))), provider="sandbox"),
    )
    ill.asked.clear()
    world = replace(world, deps=deps)
    return Paced(world, well), Paced(world, ill)


def test_an_unreachable_months_requests_are_counted_as_the_site_counts_them(live: Live) -> None:
    live.site.add_campground(Campground("200", "Lower Pines", SITES))
    user_id, _ = live.camper(dates=(JULY[0], date(2027, 9, 1)))
    live.scan(user_id, campground="200")
    live.site.misbehave(Fault.STATUS, on="availability", status=429, campground_id="100")
    run = live.detect()
    assert run.counts["requests"] == len(live.asked())
