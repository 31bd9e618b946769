"""What every booking site's adapter must do, over real HTTP; a new one adds a driver and nothing else."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, Protocol

import httpx
import pytest

from chalicelib import wiring
from chalicelib.providers.contract import CheckError, Provider, ProviderError
from chalicelib.providers.recreation_gov import RecreationGov, RecreationGovConfig
from sandbox.booking_site import BookingSite
from sandbox.campgrounds import Campground, Campsite
from sandbox.faults import Fault
from tests.support.standins import HandClock, make_settings

NOW = datetime(2030, 6, 10, 12, tzinfo=UTC)
JULY = date(2030, 7, 1)
NIGHTS = {date(2030, 7, 4), date(2030, 7, 5), date(2030, 7, 31)}


class Driver(Protocol):
    """An adapter beside its stand-in. Campground 900 has sites 11 and 12; NIGHTS of 11 are open, all others taken."""

    provider_id: str

    def provider(self, seconds: float = 10) -> Provider: ...

    def misbehave(self, fault: Fault, **how: Any) -> None: ...

    def paths(self) -> list[str]: ...


class RecreationGovDriver:
    provider_id = "recreation_gov"

    def __init__(self, stack: ExitStack) -> None:
        self._site = stack.enter_context(BookingSite(now=lambda: NOW))
        self._site.add_campground(Campground("900", "HERON BEND", (Campsite("11", "A01"), Campsite("12", "B02"))))
        self._site.open("900", "11", NIGHTS)
        self._client = stack.enter_context(httpx.Client(trust_env=False, verify=False))

    def misbehave(self, fault: Fault, **how: Any) -> None:
        self._site.misbehave(fault, **how)

    def provider(self, seconds: float = 10) -> Provider:
        config = RecreationGovConfig(base_url=self._site.url, user_agent="sitebell (tests)", deadline_seconds=seconds)
        return RecreationGov(self._client, config, clock=lambda: NOW)

    def paths(self) -> list[str]:
        return [request.path for request in self._site.requests]


DRIVERS: dict[str, Callable[[ExitStack], Driver]] = {"recreation_gov": RecreationGovDriver}

QUESTIONS: dict[str, Callable[[Provider], object]] = {
    "availability": lambda provider: provider.availability("900", JULY).read(),
    "campsites": lambda provider: provider.campsites("900"),
    "campground": lambda provider: provider.campground("900"),
}


@pytest.fixture(params=sorted(DRIVERS))
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with ExitStack() as stack:
        yield DRIVERS[request.param](stack)


@pytest.fixture(params=sorted(QUESTIONS))
def ask(request: pytest.FixtureRequest) -> Callable[[Provider], object]:
    return QUESTIONS[request.param]


def refusal(question: Callable[[], object]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        question()
    return caught.value


def test_every_registered_provider_has_a_driver_here() -> None:
    with ExitStack() as stack:
        assert set(DRIVERS) == set(wiring.providers(make_settings({}), stack, HandClock()))


def test_an_adapter_is_registered_under_its_own_name(driver: Driver) -> None:
    info = driver.provider().info
    assert info.id == driver.provider_id
    assert info.concurrency > 0
    assert info.campground_link.format(campground_id="900").endswith("900")
    assert info.campsite_link.format(campground_id="900", campsite_id="11").endswith("11")


def test_a_month_shows_which_nights_are_open(driver: Driver) -> None:
    answer = driver.provider().availability("900", JULY).read()
    assert answer.month == JULY
    assert not answer.blank
    assert {key: site.nights for key, site in answer.sites.items()} == {"11": NIGHTS, "12": frozenset()}
    assert {key: site.campsite.id for key, site in answer.sites.items()} == {"11": "11", "12": "12"}
    assert answer.sites["11"].campsite.name == "A01"


def test_a_question_is_one_request(driver: Driver, ask: Callable[[Provider], object]) -> None:
    ask(driver.provider())
    assert len(driver.paths()) == 1


def test_metadata_names_the_campsites_and_the_campground(driver: Driver) -> None:
    metadata = driver.provider().campsites("900")
    assert metadata.campground_name == "Heron Bend"
    assert {key: site.name for key, site in metadata.campsites.items()} == {"11": "A01", "12": "B02"}


def test_a_campground_has_a_record_of_its_own(driver: Driver) -> None:
    record = driver.provider().campground("900")
    assert (record.id, record.name, record.time_zone) == ("900", "Heron Bend", "America/Los_Angeles")
    assert (record.latitude, record.longitude) == (44.0, -121.5)


def test_a_campground_that_is_not_there_is_not_found(driver: Driver) -> None:
    assert refusal(lambda: driver.provider().campground("901")).category is CheckError.NOT_FOUND


@pytest.mark.parametrize("campground_id", ["", ".", "..", "9" * 129, "9\x00"])
def test_what_cannot_be_an_id_is_not_found_without_a_request(
    driver: Driver, ask: Callable[[Provider], object], campground_id: str
) -> None:
    provider = driver.provider()
    for question in (
        partial(provider.availability, campground_id, JULY),
        partial(provider.campsites, campground_id),
        partial(provider.campground, campground_id),
    ):
        assert refusal(question).category is CheckError.NOT_FOUND
    assert driver.paths() == []


@pytest.mark.parametrize("campground_id", ["a/b", "a?b=c", "a#b", "a b", "../x", "é", "%2e"])
def test_an_odd_id_stays_in_its_place_of_the_path(driver: Driver, campground_id: str) -> None:
    assert refusal(lambda: driver.provider().campground(campground_id)).category is CheckError.NOT_FOUND
    [path] = driver.paths()
    assert path.count("/") == 4


# --- trouble ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (301, CheckError.CLIENT_ERROR),
        (302, CheckError.CLIENT_ERROR),
        (400, CheckError.CLIENT_ERROR),
        (401, CheckError.CLIENT_ERROR),
        (403, CheckError.BLOCKED),
        (404, CheckError.NOT_FOUND),
        (408, CheckError.CLIENT_ERROR),
        (410, CheckError.CLIENT_ERROR),
        (429, CheckError.RATE_LIMITED),
        (500, CheckError.SERVER_ERROR),
        (502, CheckError.SERVER_ERROR),
        (503, CheckError.SERVER_ERROR),
        (599, CheckError.SERVER_ERROR),
    ],
)
@pytest.mark.parametrize("fault", [Fault.STATUS, Fault.STATUS_HTML], ids=lambda fault: fault.name)
def test_a_status_has_its_category(
    driver: Driver, ask: Callable[[Provider], object], fault: Fault, status: int, category: CheckError
) -> None:
    driver.misbehave(fault, status=status)
    error = refusal(lambda: ask(driver.provider()))
    assert (error.category, error.status, error.retry_after) == (category, status, None)
    assert len(driver.paths()) == 1  # no redirect followed, nothing repeated


@pytest.mark.parametrize(
    ("fault", "category"),
    [
        (Fault.TRUNCATED, CheckError.NOT_JSON),
        (Fault.CHALLENGE, CheckError.NOT_JSON),  # a page, and nothing in it that says what it wants
        (Fault.DROP_BEFORE_HEADERS, CheckError.TRANSPORT_ERROR),
        (Fault.DROP_AFTER_HEADERS, CheckError.TRANSPORT_ERROR),
        (Fault.DROP_MIDWAY, CheckError.TRANSPORT_ERROR),
        (Fault.RESET, CheckError.TRANSPORT_ERROR),
    ],
    ids=lambda value: value.name,
)
def test_a_spoilt_answer_has_its_category(
    driver: Driver, ask: Callable[[Provider], object], fault: Fault, category: CheckError
) -> None:
    driver.misbehave(fault)
    assert refusal(lambda: ask(driver.provider())).category is category


@pytest.mark.parametrize(
    ("hint", "wait"),
    [
        (90, timedelta(seconds=90)),
        ("Mon, 10 Jun 2030 12:05:00 GMT", timedelta(minutes=5)),
        ("Mon, 10 Jun 2030 11:00:00 GMT", None),
        (-5, None),
        ("soon", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_what_the_site_says_of_coming_back_is_handed_on(
    driver: Driver, status: int, hint: int | str, wait: timedelta | None
) -> None:
    driver.misbehave(Fault.STATUS, status=status, retry_after=hint)
    assert refusal(lambda: driver.provider().availability("900", JULY).read()).retry_after == wait


@pytest.mark.parametrize("fault", [Fault.SLOW, Fault.DRIP], ids=lambda fault: fault.name)
def test_a_request_ends_when_its_time_is_over(driver: Driver, ask: Callable[[Provider], object], fault: Fault) -> None:
    driver.misbehave(fault, seconds=0.02 if fault is Fault.DRIP else 5)
    began = time.monotonic()
    assert refusal(lambda: ask(driver.provider(seconds=0.15))).category is CheckError.TIMEOUT
    assert time.monotonic() - began < 2


def test_a_late_answer_that_is_still_in_time_is_good(driver: Driver, ask: Callable[[Provider], object]) -> None:
    driver.misbehave(Fault.SLOW, seconds=0.05)
    assert ask(driver.provider())


def test_nobody_there_is_a_transport_error(ask: Callable[[Provider], object]) -> None:
    with BookingSite() as gone:
        address = gone.url
    with httpx.Client(trust_env=False, verify=False) as client:
        provider = RecreationGov(client, RecreationGovConfig(base_url=address, user_agent="sitebell (tests)"))
        assert refusal(lambda: ask(provider)).category is CheckError.TRANSPORT_ERROR


def test_after_trouble_the_next_answer_is_good(driver: Driver, ask: Callable[[Provider], object]) -> None:
    provider = driver.provider()
    for fault in (Fault.STATUS, Fault.DROP_MIDWAY, Fault.TRUNCATED):
        driver.misbehave(fault)
        refusal(lambda: ask(provider))
        assert ask(provider)


def test_an_error_holds_its_category_and_no_text_of_others(driver: Driver) -> None:
    driver.misbehave(Fault.RESET)
    error = refusal(lambda: driver.provider().availability("900", JULY).read())
    assert str(error) == "transport_error"
    assert error.__cause__ is None
    assert error.__suppress_context__


# --- odd answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.EMPTY_OBJECT, Fault.COUNT_ZERO, Fault.NO_NIGHTS], ids=lambda fault: fault.name)
def test_a_month_that_says_nothing_is_blank(driver: Driver, fault: Fault) -> None:
    driver.misbehave(fault)
    answer = driver.provider().availability("900", JULY).read()
    assert answer.blank
    assert all(site.nights is None for site in answer.sites.values())


@pytest.mark.parametrize(
    "fault", [Fault.NULL_NIGHTS, Fault.NULL_STATUS, Fault.NULL_CAMPSITE], ids=lambda fault: fault.name
)
def test_a_site_of_which_nothing_is_said_is_unknown_and_the_others_are_not(driver: Driver, fault: Fault) -> None:
    driver.misbehave(fault, campsite_id="12")
    answer = driver.provider().availability("900", JULY).read()
    assert not answer.blank
    assert {key: site.nights for key, site in answer.sites.items()} == {"11": NIGHTS, "12": None}
    assert sum(answer.oddities.values()) > 0


def test_a_site_that_is_missing_is_missing(driver: Driver) -> None:
    driver.misbehave(Fault.MISSING_CAMPSITE, campsite_id="12")
    assert set(driver.provider().availability("900", JULY).read().sites) == {"11"}


@pytest.mark.parametrize(
    "fault", [Fault.MISSING_NIGHTS, Fault.NULL_STATUS, Fault.UNKNOWN_STATUS], ids=lambda fault: fault.name
)
def test_a_night_that_is_missing_or_odd_is_not_open_and_loses_no_other(driver: Driver, fault: Fault) -> None:
    driver.misbehave(fault, campsite_id="11", night=date(2030, 7, 4))
    answer = driver.provider().availability("900", JULY).read()
    assert answer.sites["11"].nights == NIGHTS - {date(2030, 7, 4)}


@pytest.mark.parametrize("fault", [Fault.INT_IDS, Fault.NULL_TYPE], ids=lambda fault: fault.name)
def test_a_field_of_another_type_loses_nothing(driver: Driver, fault: Fault) -> None:
    driver.misbehave(fault, on="availability")
    driver.misbehave(fault, on="campsites")
    answer = driver.provider().availability("900", JULY).read()
    assert {key: site.nights for key, site in answer.sites.items()} == {"11": NIGHTS, "12": frozenset()}
    assert set(driver.provider().campsites("900").campsites) == {"11", "12"}


def test_metadata_that_is_missing_is_none_at_all(driver: Driver) -> None:
    driver.misbehave(Fault.COUNT_ZERO, on="campsites")
    assert driver.provider().campsites("900").campsites == {}


def test_an_odd_record_of_metadata_loses_no_other(driver: Driver) -> None:
    driver.misbehave(Fault.NULL_CAMPSITE, on="campsites", campsite_id="11")
    metadata = driver.provider().campsites("900")
    assert set(metadata.campsites) == {"12"}
    assert sum(metadata.oddities.values()) == 1
