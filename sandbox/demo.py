"""The demo of `make run`: invented campgrounds with a weekend that opens again and again."""

from dataclasses import dataclass
from datetime import date, timedelta
from types import TracebackType
from typing import Self

from sandbox.booking_site import BookingSite
from sandbox.campgrounds import Campground, Campsite
from sandbox.push_service import PushService
from sandbox.server import Clock, utc_now

APP_TOKEN = "sitebellDemoAppToken0000000001"  # invented, for the stand-in only
USER_KEY = "sitebellDemoUserKey00000000001"

FIRST_OPENING = timedelta(seconds=20)
OPEN_FOR = timedelta(minutes=2)
TAKEN_FOR = timedelta(minutes=2)  # longer than a minute, so that each closing is seen, too

_ELECTRIC = {"Electricity Hookup": "30 amp"}
_HERON = Campground(
    id="900001",
    name="Heron Bend Campground",
    sites=(
        Campsite("9000011", "A01", "Alder", "TENT ONLY NONELECTRIC", equipment={"Tent": 0}),
        Campsite("9000012", "A02", "Alder", "TENT ONLY NONELECTRIC", accessible=True, equipment={"Tent": 0}),
        Campsite("9000013", "B07", "Birch", equipment={"Tent": 0, "RV": 28, "Trailer": 24}),
        Campsite("9000014", "B12", "Birch", "STANDARD ELECTRIC", attributes=_ELECTRIC, equipment={"RV": 35}),
        Campsite("9000015", "HOST", "Birch", "MANAGEMENT"),
    ),
    latitude=44.213,
    longitude=-121.702,
)
_CINDER = Campground(
    id="900002",
    name="Cinder Flat Campground",
    sites=tuple(
        Campsite(f"90000{20 + number}", f"{number:03d}", "Juniper", equipment={"Tent": 0, "RV": 30})
        for number in range(1, 7)
    ),
    latitude=43.587,
    longitude=-121.204,
)
_OTTER = Campground(
    id="900003",
    name="Otter Creek Cabins",
    sites=(
        Campsite("9000031", "Cabin 1", "", "CABIN ELECTRIC", max_people=4),
        Campsite("9000032", "Cabin 2", "", "CABIN NONELECTRIC", min_people=2, max_people=8),
        Campsite("9000033", "Picnic shelter", "", "PICNIC", type_of_use="Day", max_people=20),
    ),
    latitude=45.031,
    longitude=-122.418,
)


@dataclass(frozen=True, slots=True)
class Demo:
    """The running demo, and what scans and a channel for it need; `end` is the day of checkout.

    At `campground_id` the nights from `start` to `end` come and go; at `open_campground_id` one of the week is open.
    """

    site: BookingSite
    push: PushService
    app_token: str
    user_key: str
    campground_id: str
    campground_name: str
    open_campground_id: str
    start: date
    end: date

    @property
    def site_url(self) -> str:
        """The booking site's origin."""
        return self.site.url

    @property
    def push_url(self) -> str:
        """The push service's origin."""
        return self.push.url

    def close(self) -> None:
        """Stop both services; safe to call twice."""
        try:
            self.push.close()
        finally:  # a hook's error in one must not leave the other running
            self.site.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start_demo(now: Clock = utc_now, *, host: str = "127.0.0.1", site_port: int = 0, push_port: int = 0) -> Demo:
    """Start booking site and push service on the given ports (0: free ones) and give the demo.

    At `campground_id` a weekend (Friday and Saturday night, a week or more ahead) opens after 20 seconds, is taken two
    minutes later, opens again after two more, and so on. The other campgrounds are full but for a steady night.
    """
    friday = _friday_after(now().date() + timedelta(days=7))
    weekend = [friday, friday + timedelta(days=1)]
    site = BookingSite(now=now, host=host, port=site_port)
    try:
        push = PushService(APP_TOKEN, [USER_KEY], now=now, host=host, port=push_port)
    except OSError:
        site.close()
        raise
    for campground in (_HERON, _CINDER, _OTTER):
        site.add_campground(campground)
    opening = now() + FIRST_OPENING
    site.flicker("900001", "9000013", weekend, start=opening, open_for=OPEN_FOR, taken_for=TAKEN_FOR)
    site.open("900002", "9000024", friday + timedelta(days=3))
    return Demo(
        site=site,
        push=push,
        app_token=APP_TOKEN,
        user_key=USER_KEY,
        campground_id=_HERON.id,
        open_campground_id=_CINDER.id,
        campground_name=_HERON.name,
        start=friday,
        end=friday + timedelta(days=3),
    )


def _friday_after(day: date) -> date:
    return day + timedelta(days=(4 - day.weekday()) % 7)
