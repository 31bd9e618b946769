"""CPU time of a check that finds nothing new, whole (HTTP, parsing, database), beside a bare JSON loop over its body.

The booking site is a process of its own, so its time is not counted; SQLite's is, PostgreSQL's server's is not. Bare is
json.loads and a plain loop that finds the `Available` nights, in memory: no HTTP, no database, no second status.
"""

import json
import random
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median
from uuid import uuid4

import httpx
from sqlalchemy import insert

from bench.rows import empty
from bench.site import instant_site
from bench.table import Aim, Line, ratio_of
from chalicelib.db.engine import Database
from chalicelib.db.tables import campgrounds, providers, unique_targets, user_scans, users
from chalicelib.db.vault import Vault, new_key
from chalicelib.deps import Deps
from chalicelib.detection import detect
from chalicelib.history import RunResult, utc_now
from chalicelib.providers.recreation_gov import RecreationGov, RecreationGovConfig
from sandbox.campgrounds import Campground, Campsite, month_body
from tests.support.standins import HandClock, make_settings

AIM = Aim(2, least=False)
ROUNDS = 7
OPEN = 0.02
"""The share of nights that are open."""

NIGHTS = 28
"""Of every month: all that the shortest has, so that the two halves see the same."""

WORDS = ("Reserved", "Reserved", "Reserved", "Not Reservable", "NYR")


@dataclass(frozen=True, slots=True)
class Size:
    """How many targets a run checks, each one campground of so many sites over one month."""

    name: str
    sites: int
    targets: int
    aim: Aim | None


SIZES = (
    Size("240 sites", 240, 12, AIM),
    Size("20 sites", 20, 40, None),  # a small body is outweighed by its request, whoever makes it
)


def measure(urls: Mapping[str, str]) -> list[Line]:
    """Every size on both databases."""
    month = (utc_now().date().replace(day=1) + timedelta(days=70)).replace(day=1)
    return [
        _measured(name, url, size, month, list(_bodies(size, month))) for size in SIZES for name, url in urls.items()
    ]


def _measured(name: str, url: str, size: Size, month: date, bodies: list[bytes]) -> Line:
    measured: list[float] = []
    bare: list[float] = []
    seconds: list[float] = []
    with _watched(url, month, bodies) as world:
        nights = sum(map(_bare_nights, bodies))
        first = world.check()
        if first.counts["openings"] != nights:
            raise RuntimeError(f"{first.counts} and not {nights} openings")
        for _ in range(ROUNDS):
            began = time.process_time()
            for body in bodies:
                _bare_nights(body)
            bare.append((time.process_time() - began) / len(bodies))
            began, wall = time.process_time(), time.perf_counter()
            counts = world.check().counts
            measured.append((time.process_time() - began) / len(bodies))
            seconds.append((time.perf_counter() - wall) / len(bodies))
            if (counts["targets_checked"], counts["requests"], counts["openings"]) != (len(bodies), len(bodies), 0):
                raise RuntimeError(f"not a run of unchanged checks: {counts}")
    return Line(
        f"check, {name}, {size.name}, {sum(map(len, bodies)) // len(bodies) // 1000} KB",
        f"{1000 * median(measured):.1f} ms CPU ({1 / median(seconds):.0f}/s)",
        f"{1000 * median(bare):.1f} ms CPU",
        ratio_of(measured, bare),
        size.aim,
    )


def _bare_nights(body: bytes) -> int:
    nights = [
        (site_id, key[:10])
        for site_id, site in json.loads(body)["campsites"].items()
        for key, status in site["availabilities"].items()
        if status == "Available"
    ]
    return len(nights)


def _bodies(size: Size, month: date) -> Iterable[bytes]:
    """Months as the sandbox writes them, each of another campground."""
    chance = random.Random(size.sites)
    for number in range(size.targets):
        sites = tuple(
            Campsite(str(100_000 + 1000 * number + site), f"{site:03d}", f"Loop {chr(65 + site // 40)}")
            for site in range(size.sites)
        )
        told = {
            (site.id, month + timedelta(days=day)): "Available" if chance.random() < OPEN else chance.choice(WORDS)
            for site in sites
            for day in range(NIGHTS)
        }
        campground = Campground(str(100 + number), f"Campground {number}", sites)
        yield json.dumps(month_body(campground, month, month, told), separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class _World:
    """Campgrounds that are watched, with the metadata of their campsites known to be empty."""

    deps: Deps
    clock: HandClock

    def check(self) -> RunResult:
        """One run, a minute after the last."""
        self.clock.advance(minutes=1)
        return detect.run(self.deps, self.clock() + timedelta(minutes=10))


@contextmanager
def _watched(url: str, month: date, bodies: list[bytes]) -> Generator[_World]:
    served = {str(100 + number): body for number, body in enumerate(bodies)}
    with ExitStack() as stack:
        origin = stack.enter_context(instant_site(served))
        database = stack.enter_context(closing(Database(url)))
        _watch(database, served, month)
        clock = HandClock(utc_now())
        limits = httpx.Limits(max_connections=8, max_keepalive_connections=8)
        client = stack.enter_context(httpx.Client(verify=False, trust_env=False, limits=limits))  # noqa: S501 - loopback
        config = RecreationGovConfig(base_url=origin, user_agent="Sitebell/bench")
        yield _World(
            Deps(
                settings=make_settings({"recreation_gov_per_minute": 100_000}),
                database=database,
                vault=Vault([new_key()]),
                providers={"recreation_gov": RecreationGov(client, config, clock)},
                channels={},
                clock=clock,
            ),
            clock,
        )


def _watch(database: Database, campground_ids: Iterable[str], month: date) -> None:
    """One person follows every campground over the whole month."""
    empty(database)
    now, person = utc_now(), uuid4()
    targets = {campground_id: uuid4() for campground_id in campground_ids}
    with database.transaction() as connection:
        connection.execute(insert(providers), [{"id": "recreation_gov", "name": "Recreation.gov"}])
        connection.execute(insert(users), [{"id": person, "email": "ann@example.org", "created_at": now}])
        connection.execute(
            insert(campgrounds),
            [
                {
                    "provider": "recreation_gov",
                    "campground_id": campground_id,
                    "name": "Upper Pines",
                    "campsites_fetched_at": now,
                    "updated_at": now,
                }
                for campground_id in targets
            ],
        )
        connection.execute(
            insert(unique_targets),
            [
                {
                    "id": target,
                    "provider": "recreation_gov",
                    "campground_id": campground_id,
                    "start_date": month,
                    "end_date": month + timedelta(days=NIGHTS),
                    "created_at": now,
                }
                for campground_id, target in targets.items()
            ],
        )
        connection.execute(
            insert(user_scans),
            [{"id": uuid4(), "user_id": person, "target_id": target, "created_at": now} for target in targets.values()],
        )
