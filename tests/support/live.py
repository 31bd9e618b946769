"""The real adapters over HTTP on loopback, against the sandbox; time is moved by hand on both sides."""

from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
from pydantic import SecretStr
from sqlalchemy import RowMapping, select, update

from chalicelib.channels.pushover import Pushover, PushoverConfig
from chalicelib.db.engine import Database
from chalicelib.db.tables import alert_history, notification_outbox, scan_results, unique_targets, user_scans
from chalicelib.db.vault import Vault
from chalicelib.deps import Deps
from chalicelib.detection import detect
from chalicelib.history import RunResult, RuntimeState
from chalicelib.outbox import drain, prune
from chalicelib.providers.recreation_gov import RecreationGov, RecreationGovConfig
from sandbox.booking_site import BookingSite
from sandbox.campgrounds import Campground, Campsite
from sandbox.push_service import PushService
from tests.support.rows import add_channel, add_scan, add_user, make_request
from tests.support.standins import HandClock, make_settings

START = datetime(2027, 6, 1, 12, 0, tzinfo=UTC)
JULY = (date(2027, 7, 1), date(2027, 7, 31))
APP_TOKEN = "a" * 30
SECRET_KEY = "c2l0ZWJlbGwtdGVzdHMtc2l0ZWJlbGwtdGVzdHMtMDI="
USER_KEY = "u" * 30
SITES = tuple(Campsite(f"10{number}", f"{number:03d}", "Loop A") for number in range(1, 6))


@dataclass(frozen=True)
class Live:
    """Everything, running: `deps` for the use cases, and the outside world behind them."""

    deps: Deps
    clock: HandClock
    site: BookingSite
    push: PushService

    def with_settings(self, **values: Any) -> "Live":
        """The same world seen by an instance that is set up otherwise."""
        chosen = self.deps.settings.model_copy(update=values)
        return replace(self, deps=replace(self.deps, settings=chosen))

    def detect(self, seconds: float = 60) -> RunResult:
        return detect.run(self.deps, self.clock() + timedelta(seconds=seconds))

    def drain(self, seconds: float = 120, workers: int = drain.WORKERS) -> RunResult:
        return drain.run(self.deps, self.clock() + timedelta(seconds=seconds), workers=workers)

    def prune(self) -> RunResult:
        return prune.run(self.deps, self.clock() + timedelta(seconds=60))

    @contextmanager
    def elsewhere(self) -> Generator["Live"]:
        """The same world seen by another process: it shares the database and the outside world, and no memory."""
        url = self.deps.database.engine.url.render_as_string(hide_password=False)
        with closing(Database(url)) as database:
            yield replace(self, deps=replace(self.deps, database=database, runtime=RuntimeState()))

    def asked(self) -> list[str]:
        """What the booking site was asked for by checks: `100 2027-07` for a month, `100 campsites` for metadata."""
        asked: list[str] = []
        for request in self.site.requests:
            if request.path.endswith("/month"):
                asked.append(f"{request.path.split('/')[-2]} {request.params['start_date'][0][:7]}")
            elif request.path == "/api/search/campsites":
                asked.append(f"{request.params['fq'][0].removeprefix('asset_id:')} campsites")
        return asked

    def camper(
        self, *, email: str = "ann@example.org", key: str = USER_KEY, campground: str = "100", **request: Any
    ) -> tuple[UUID, UUID]:
        """A person with a channel and a scan; gives both ids."""
        user_id = add_user(self.deps, email)
        add_channel(self.deps, user_id, key)
        return user_id, self.scan(user_id, campground=campground, **request)

    def scan(self, user_id: UUID, *, campground: str = "100", dates: tuple[date, date] = JULY, **request: Any) -> UUID:
        return add_scan(self.deps, user_id, make_request(campground=campground, dates=dates, **request))

    def checked_again(self) -> RunResult:
        """The next check, after the cooldown."""
        self.clock.advance(minutes=1)
        return self.detect()

    def rows(self) -> list[RowMapping]:
        """The outbox, oldest first."""
        o = notification_outbox
        with self.deps.database.reading() as connection:
            return list(connection.execute(select(o).order_by(o.c.created_at, o.c.delivery_key)).mappings())

    def row(self) -> RowMapping:
        """The outbox's only row."""
        (row,) = self.rows()
        return row

    def results(self) -> dict[str, list[str]]:
        """Stored open nights by campsite id."""
        with self.deps.database.reading() as connection:
            rows = connection.execute(select(scan_results.c.campsite_id, scan_results.c.nights))
            return {row.campsite_id: sorted(row.nights) for row in rows}

    def target(self, campground: str = "100") -> RowMapping:
        here = unique_targets.c.campground_id == campground
        with self.deps.database.reading() as connection:
            return connection.execute(select(unique_targets).where(here)).mappings().one()

    def history(self) -> list[RowMapping]:
        with self.deps.database.reading() as connection:
            return list(connection.execute(select(alert_history)).mappings())

    def set_scan(self, scan_id: UUID, **values: Any) -> None:
        self.set_rows(user_scans, user_scans.c.id == scan_id, **values)

    def set_rows(self, table: Any, where: Any, **values: Any) -> None:
        """Put rows into a state that is tedious to reach by the front door."""
        with self.deps.database.transaction() as connection:
            connection.execute(update(table).where(where).values(**values))


@contextmanager
def live_world(database: Database, **settings: Any) -> Generator[Live]:
    """A running world with one campground, "100", of five sites "101" to "105" (named "001" to "005"), all taken."""
    clock = HandClock(START)
    with ExitStack() as stack:
        site = stack.enter_context(BookingSite(now=clock))
        push = stack.enter_context(PushService(APP_TOKEN, now=clock))
        site.add_campground(Campground("100", "Upper Pines", SITES))
        chosen = make_settings(
            {
                "recreation_gov_url": site.url,
                "recreation_gov_per_minute": 600,
                "pushover_url": push.url,
                "pushover_app_token": SecretStr(APP_TOKEN),
                "attempt_deadline": 5,
                **settings,
            }
        )
        client = stack.enter_context(httpx.Client(verify=False, trust_env=False))
        provider = RecreationGov(
            client, RecreationGovConfig(base_url=site.url, user_agent="Sitebell/test", deadline_seconds=5), clock
        )
        channel = Pushover(
            client, PushoverConfig(base_url=push.url, app_token=chosen.pushover_app_token, timeout_seconds=5)
        )
        deps = Deps(
            settings=chosen,
            database=database,
            vault=Vault([SECRET_KEY]),
            providers={"recreation_gov": provider},
            channels={"pushover": channel},
            clock=clock,
            pause=lambda _: None,
        )
        yield Live(deps, clock, site, push)
