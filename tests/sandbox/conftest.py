"""A booking site with one invented campground, at a moment that tests move, and a client with an honest name."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from urllib.parse import quote

import httpx
import pytest

from sandbox.booking_site import BookingSite
from sandbox.campgrounds import Campground, Campsite

ALDER = Campsite("11", "A01", "Alder", "TENT ONLY NONELECTRIC", equipment={"Tent": 0}, accessible=True)
BIRCH = Campsite("12", "B02", "Birch", "STANDARD ELECTRIC", attributes={"Electricity Hookup": "30"}, hidden=True)
HOST = Campsite("13", "HOST", "Birch", "MANAGEMENT")


def client(url: str = "", user_agent: str = "sitebell-tests (someone@example.org)") -> httpx.Client:
    """Give a client for loopback; `verify` is off because making a TLS context takes longer than most tests here."""
    return httpx.Client(base_url=url, headers={"User-Agent": user_agent}, trust_env=False, timeout=5, verify=False)


class MovingClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.moment = datetime(2030, 6, 10, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def move(self, **by: float) -> None:
        self.moment += timedelta(**by)


class Visitor:
    """Asks a booking site as a careful client does."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def month(self, campground_id: str = "900", start_date: str = "2030-07-01") -> httpx.Response:
        moment = quote(f"{start_date}T00:00:00.000Z", safe="")
        return self.http.get(f"/api/camps/availability/campground/{campground_id}/month?start_date={moment}")

    def status(self, night: date, campsite_id: str = "11") -> str | None:
        record = self.month(start_date=f"{night:%Y-%m}-01").json()["campsites"][campsite_id]
        return record["availabilities"].get(f"{night}T00:00:00Z")

    def search(self, campground_id: str = "900") -> httpx.Response:
        params = {"start": 0, "size": 1000, "fq": f"asset_id:{campground_id}"}
        return self.http.get("/api/search/campsites", params=params)

    def campground(self, campground_id: str = "900") -> httpx.Response:
        return self.http.get(f"/api/camps/campgrounds/{campground_id}")


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def site(clock: MovingClock) -> Iterator[BookingSite]:
    with BookingSite(now=clock) as site:
        site.add_campground(Campground("900", "Heron Bend", (ALDER, BIRCH, HOST)))
        yield site


@pytest.fixture
def visitor(site: BookingSite) -> Iterator[Visitor]:
    with client(site.url) as http:
        yield Visitor(http)
