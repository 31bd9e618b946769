"""A look at a campground without a scan: fresh, shared, at the pace of checks, and never an exception."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from sqlalchemy import select, update

from chalicelib.catalog.lookup import find_or_look_up
from chalicelib.catalog.metadata import remember_metadata
from chalicelib.db.engine import Database
from chalicelib.db.tables import glimpses, provider_states
from chalicelib.detection.glimpse import Glimpse, glimpse
from chalicelib.providers.contract import CampsiteMetadata, CheckError, MonthDocument, ProviderError
from chalicelib.stays.campsites import Campsite, Equipment
from chalicelib.stays.openings import MonthAnswer, SiteMonth
from tests.support.standins import NOW, StandInProvider, World, make_world, open_connections

JULY, AUGUST, SEPTEMBER, OCTOBER = (date(2027, month, 1) for month in (7, 8, 9, 10))
TENT = Campsite("10", "044", "Loop A", "TENT ONLY NONELECTRIC", frozenset({"tent"}), electric=False)
RV = Campsite("11", "012", "Loop B", "RV ELECTRIC", frozenset({"rv"}), electric=True)


@dataclass
class Site(StandInProvider):
    """Answers a month with what it is given, else with one taken site; notes which months it was asked for."""

    shown: dict[date, dict[str, SiteMonth]] = field(default_factory=dict[date, dict[str, SiteMonth]])
    months: list[date] = field(default_factory=list[date])
    read: Callable[[], None] = lambda: None

    def availability(self, campground_id: str, month: date) -> MonthDocument:
        self.months.append(month)
        self._ask(campground_id)

        def answer() -> MonthAnswer:
            self.read()
            return MonthAnswer(month, self.shown.get(month, {"10": SiteMonth(TENT, frozenset())}))

        return MonthDocument("", answer)


@dataclass(frozen=True)
class Looking:
    world: World
    site: Site

    def at(self, *months: date, **how: Any) -> Glimpse:
        return glimpse(self.world.deps, "recreation_gov", "232447", months, **how)

    def shows(self, month: date, **sites: tuple[Campsite, list[int] | None]) -> None:
        self.site.shown[month] = {
            campsite.id: SiteMonth(
                campsite, None if days is None else frozenset(month.replace(day=day) for day in days)
            )
            for campsite, days in sites.values()
        }

    def state(self) -> Any:
        with self.world.deps.database.reading() as connection:
            return connection.execute(select(provider_states)).one()


@pytest.fixture
def looking(database: Database) -> Looking:
    return _looking(database)


def _looking(database: Database, **settings: Any) -> Looking:
    world, site = make_world(database, **settings), Site()
    return Looking(replace(world, deps=replace(world.deps, providers={"recreation_gov": site})), site)


# --- what it shows ---------------------------------------------------------------------------------------------------


def test_months_are_one_picture_of_every_site(looking: Looking) -> None:
    looking.shows(JULY, a=(TENT, [30, 31]), b=(RV, []))
    looking.shows(AUGUST, a=(TENT, [1]))
    seen = looking.at(AUGUST, date(2027, 7, 20))
    assert {site_id: sorted(found.nights) for site_id, found in seen.sites.items()} == {
        "10": [date(2027, 7, 30), date(2027, 7, 31), date(2027, 8, 1)],
        "11": [],
    }
    assert seen.sites["10"].campsite == TENT
    assert (seen.seen_at, seen.unknown, seen.trouble) == (NOW, (), None)


def test_sites_are_completed_by_what_the_catalogue_knows(looking: Looking) -> None:
    deps = looking.world.deps
    find_or_look_up(deps.database, looking.site, "232447", NOW)
    known = Campsite("10", "044", accessible=True, equipment=(Equipment("Tent"),))
    with deps.database.transaction() as connection:
        remember_metadata(connection, "recreation_gov", "232447", CampsiteMetadata({"10": known}), NOW)
    looking.shows(JULY, a=(TENT, [30]), b=(RV, [30]))
    for _ in range(2):  # fetched, and kept
        assert looking.at(JULY).sites["10"].campsite == TENT.completed_by(known)
        assert looking.at(JULY).sites["11"].campsite == RV


def test_what_an_answer_does_not_tell_of_a_site_is_unknown_and_describes_none(looking: Looking) -> None:
    looking.shows(JULY, a=(TENT, [30]), b=(RV, []))
    looking.shows(AUGUST, a=(Campsite("10", "10"), None), b=(RV, [2]))
    seen = looking.at(JULY, AUGUST)
    assert seen.sites["10"].campsite == TENT
    assert seen.sites["10"].unknown_since == {AUGUST: NOW}
    assert (seen.unknown, seen.trouble) == ((), None)


def test_a_blank_month_is_unknown_and_says_so_while_it_is_kept(looking: Looking) -> None:
    looking.shows(JULY, a=(TENT, None))
    looking.shows(AUGUST)
    looking.shows(SEPTEMBER, a=(TENT, []))
    for _ in range(2):
        seen = looking.at(JULY, AUGUST, SEPTEMBER)
        assert (seen.unknown, seen.trouble) == ((JULY, AUGUST), CheckError.BLANK_ANSWER)
    assert looking.site.months == [JULY, AUGUST, SEPTEMBER]


def test_months_that_are_over_are_unknown_and_not_asked_for(looking: Looking) -> None:
    seen = looking.at(date(2027, 6, 30), JULY)
    assert (seen.unknown, seen.trouble) == ((date(2027, 6, 1),), None)
    assert looking.site.months == [JULY]


def test_nothing_wanted_is_nothing_seen(looking: Looking) -> None:
    assert looking.at() == Glimpse({}, None, (), None)


# --- fresh and shared ------------------------------------------------------------------------------------------------


def test_who_looks_within_two_minutes_sees_what_was_seen_before(looking: Looking) -> None:
    looking.shows(JULY, a=(TENT, [30]))
    first = looking.at(JULY)
    looking.shows(JULY, a=(TENT, []))
    looking.world.clock.advance(seconds=119)
    assert looking.at(JULY) == first
    looking.world.clock.advance(seconds=1)
    assert looking.at(JULY).sites["10"].nights == {}
    assert looking.at(JULY).seen_at == looking.world.clock()
    assert looking.site.months == [JULY, JULY]


def test_the_oldest_month_dates_the_picture(looking: Looking) -> None:
    looking.at(JULY)
    looking.world.clock.advance(seconds=60)
    assert looking.at(JULY, AUGUST).seen_at == NOW
    assert looking.site.months == [JULY, AUGUST]


def test_of_two_who_look_at_once_one_asks(looking: Looking) -> None:
    asked, go_on = Event(), Event()

    def hold() -> None:
        asked.set()
        assert go_on.wait(10)

    looking.site.while_asked = hold
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(looking.at, JULY)
        assert asked.wait(10)
        second = pool.submit(looking.at, JULY)
        go_on.set()
        assert first.result(10) == second.result(10)
    assert looking.site.months == [JULY]


def test_who_has_waited_for_another_for_long_enough_hears_that(looking: Looking) -> None:
    asked, go_on = Event(), Event()

    def hold() -> None:
        asked.set()
        assert go_on.wait(10)

    looking.site.while_asked = hold
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(looking.at, JULY)
        assert asked.wait(10)
        seen = looking.at(JULY, within=0.05)
        go_on.set()
        assert first.result(10).trouble is None
    assert (seen.unknown, seen.trouble) == ((JULY,), CheckError.TIMEOUT)


def test_an_older_picture_does_not_replace_a_newer_one(looking: Looking) -> None:
    """Two processes fetched, and the one that began first comes last."""

    def overtaken() -> None:
        looking.site.while_asked = lambda: None
        looking.world.clock.advance(seconds=1)
        with looking.world.deps.database.transaction() as connection:
            key = {"provider": "recreation_gov", "campground_id": "232447", "month": JULY}
            connection.execute(glimpses.insert().values(**key, fetched_at=looking.world.clock(), campsites={}))

    looking.site.while_asked = overtaken
    assert looking.at(JULY).unknown == ()
    assert looking.at(JULY).unknown == (JULY,)


# --- at the pace of checks -------------------------------------------------------------------------------------------


def test_three_months_are_fetched_at_most(looking: Looking) -> None:
    seen = looking.at(JULY, AUGUST, SEPTEMBER, OCTOBER)
    assert (seen.unknown, seen.trouble) == ((OCTOBER,), None)
    assert looking.at(JULY, AUGUST, SEPTEMBER, OCTOBER).unknown == ()  # those that are kept cost nothing
    assert looking.site.months == [JULY, AUGUST, SEPTEMBER, OCTOBER]


def test_no_request_goes_beyond_the_budget(database: Database) -> None:
    looking = _looking(database, recreation_gov_per_minute=2)
    seen = looking.at(JULY, AUGUST, SEPTEMBER)
    assert (seen.unknown, seen.trouble) == ((SEPTEMBER,), CheckError.RATE_LIMITED)
    looking.world.clock.advance(seconds=30)
    assert looking.at(JULY, AUGUST, SEPTEMBER).unknown == ()
    assert looking.site.months == [JULY, AUGUST, SEPTEMBER]


def test_a_site_that_says_stop_is_left_alone_and_the_reason_told(looking: Looking) -> None:
    looking.site.trouble = CheckError.BLOCKED
    seen = looking.at(JULY, AUGUST)
    assert (seen.sites, seen.seen_at, seen.unknown) == ({}, None, (JULY, AUGUST))
    assert seen.trouble is CheckError.BLOCKED
    looking.world.clock.advance(seconds=59)
    assert looking.at(JULY).trouble is CheckError.BLOCKED
    assert looking.site.months == [JULY]


def test_one_look_finds_out_whether_the_site_is_well_again(looking: Looking) -> None:
    """Where nobody watches anything, no check would ever find out."""
    looking.site.trouble = CheckError.BLOCKED
    looking.at(JULY)
    looking.site.trouble = None
    looking.world.clock.advance(seconds=60)
    seen = looking.at(JULY, AUGUST)
    assert (seen.unknown, seen.trouble) == ((), None)
    assert (looking.state().open_until, looking.state().failures) == (None, 0)


def test_while_one_finds_out_nobody_else_asks(looking: Looking) -> None:
    looking.site.trouble = CheckError.BLOCKED
    looking.at(JULY)
    looking.world.clock.advance(seconds=60)
    with looking.world.deps.database.transaction() as connection:
        probed = looking.world.clock() + timedelta(seconds=60)
        connection.execute(update(provider_states).values(probe_until=probed))
    assert looking.at(JULY).trouble is CheckError.BLOCKED
    assert looking.site.months == [JULY]


def test_a_challenge_that_shows_only_in_the_body_feeds_the_breaker(looking: Looking) -> None:
    def challenge() -> None:
        raise ProviderError(CheckError.BLOCKED, status=200)

    looking.site.read = challenge
    assert looking.at(JULY).trouble is CheckError.BLOCKED
    assert looking.state().open_until is not None


@pytest.mark.parametrize("trouble", sorted(set(CheckError) - {CheckError.BLANK_ANSWER}))
def test_a_failure_is_told_and_what_came_before_it_shown(looking: Looking, trouble: CheckError) -> None:
    looking.shows(JULY, a=(TENT, [30]))
    looking.at(JULY)
    looking.site.trouble = trouble
    seen = looking.at(JULY, AUGUST)
    assert (set(seen.sites), seen.unknown, seen.trouble) == ({"10"}, (AUGUST,), trouble)


def test_a_slow_site_is_not_waited_for_and_not_blamed(looking: Looking) -> None:
    """It may be slow for one request; the adapter's own deadline is what feeds the breaker."""
    go_on = Event()
    looking.site.while_asked = lambda: _held(go_on)
    seen = looking.at(JULY, AUGUST, within=0.05)
    go_on.set()
    assert (seen.unknown, seen.trouble) == ((JULY, AUGUST), CheckError.TIMEOUT)
    assert looking.site.months == [JULY]
    assert looking.state().failures == 0


def test_no_transaction_is_open_while_the_site_answers(looking: Looking) -> None:
    open_then: list[int] = []
    looking.site.while_asked = lambda: open_then.append(open_connections(looking.world.deps.database))
    looking.at(JULY, AUGUST)
    assert open_then == [0, 0]


def test_what_is_kept_is_dated_by_when_its_fetch_began(looking: Looking) -> None:
    looking.site.while_asked = lambda: looking.world.clock.advance(seconds=7)
    assert looking.at(JULY).seen_at == NOW
    with looking.world.deps.database.reading() as connection:
        kept: datetime = connection.execute(select(glimpses.c.fetched_at)).scalar_one()
    assert kept == NOW


def _held(until: Event) -> None:
    assert until.wait(10)
