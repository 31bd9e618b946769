"""Wiring: settings become a database, HTTP clients and adapters. The one place that names concrete classes."""

import logging
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from pydantic import SecretStr

from chalicelib.channels.contract import Channel
from chalicelib.db.engine import STORAGE_FAULTS, Database, NotAtHead
from chalicelib.db.keyfile import read_or_make
from chalicelib.db.vault import Vault
from chalicelib.deps import Deps
from chalicelib.history import Clock, RunResult, RuntimeState, utc_now
from chalicelib.providers.contract import Provider
from chalicelib.settings import Settings, SettingsError, settings

if TYPE_CHECKING:
    import httpx

    from chalicelib.catalog.ridb import Progress
    from chalicelib.catalog.sync import SyncResult
    from chalicelib.issuer import Issuer

log = logging.getLogger(__name__)

VERSION = "0.1.0"
KEY_FILE = Path(".data/secret_keys")
LONGEST_SEND = 20.0  # seconds for each phase of a send; the whole attempt has its own deadline

Adapter = TypeVar("Adapter")


@contextmanager
def wired(
    *, runtime: RuntimeState | None = None, clock: Clock = utc_now, wake: Callable[[], None] | None = None
) -> Generator[Deps]:
    """What the use cases need, for one run: connections and HTTP clients live no longer than the block.

    Raises SettingsError, and NotAtHead for a database of another version.
    """
    chosen = settings()
    with ExitStack() as stack:
        database = Database(chosen.database_url.get_secret_value())
        stack.callback(database.close)
        database.check_head()
        yield Deps(
            settings=chosen,
            database=database,
            vault=Vault(secret_keys(make=True)),
            providers=providers(chosen, stack, clock),
            channels=channels(chosen, stack),
            clock=clock,
            runtime=runtime or RuntimeState(),
            wake=wake,
        )


@contextmanager
def serving() -> Generator[Deps]:
    """What the use cases need for one HTTP request: as `wired`, but the process's own database stays connected.

    Raises SettingsError and NotAtHead.
    """
    if _stand_in is not None:
        yield _stand_in
        return
    chosen = settings()
    with ExitStack() as stack:
        yield Deps(
            settings=chosen,
            database=_serving_database(chosen.database_url.get_secret_value()),
            vault=_serving_vault(),
            providers=providers(chosen, stack, utc_now),
            channels=channels(chosen, stack),
            runtime=process_runtime(),
            issuer=_serving_issuer(),
        )


_stand_in: Deps | None = None
_open_databases: list[Database] = []


def forget_process() -> None:
    """Close and drop what the process keeps between requests and runs: how tests begin as a new process does."""
    while _open_databases:
        _open_databases.pop().close()
    for kept in (_serving_database, _serving_vault, _serving_issuer, process_runtime):
        kept.cache_clear()


@contextmanager
def standing_in(deps: Deps) -> Generator[None]:
    """Requests within the block get these dependencies: how tests put a world behind the app."""
    global _stand_in  # noqa: PLW0603  # the app is one a process, and so is what stands behind it
    before, _stand_in = _stand_in, deps
    try:
        yield
    finally:
        _stand_in = before


@lru_cache(maxsize=1)
def _serving_database(url: str) -> Database:
    database = Database(url)
    try:
        database.check_head()
    except BaseException:
        database.close()
        raise
    _open_databases.append(database)
    return database


@lru_cache(maxsize=1)
def _serving_vault() -> Vault:
    return Vault(secret_keys(make=True))


@lru_cache(maxsize=1)
def _serving_issuer() -> "Issuer | None":
    chosen = settings()
    if chosen.auth_mode != "oidc" or chosen.oidc_issuer is None or chosen.oidc_audience is None:
        return None
    import httpx

    from chalicelib.issuer import Issuer

    # Kept for the life of the process, its connections for none: a frozen function's would die unseen.
    verify = _tls() if chosen.oidc_issuer.startswith("https:") else False
    limits = httpx.Limits(max_keepalive_connections=0)
    client = httpx.Client(verify=verify, trust_env=False, limits=limits)
    return Issuer(client, chosen.oidc_issuer, chosen.oidc_audience, utc_now)


def run(job: str, deps: Deps, seconds: float) -> RunResult:
    """Run a scheduled function by its name, within so many seconds.

    A fault of the storage is told by the outcome `error`. Raises KeyError for another name.
    """
    work = _work(job)
    deps.runtime.run_started(job)
    healthy = False
    run_id, started = uuid4(), deps.clock()
    try:
        result = work(deps, started + timedelta(seconds=seconds))
        healthy = result.outcome != "error"
    except STORAGE_FAULTS:
        log.exception("the storage failed; %s stops", job)
        return RunResult(job, run_id, started, deps.clock(), "error", {})
    else:
        return result
    finally:
        deps.runtime.run_finished(job, at=deps.clock(), healthy=healthy)


def _work(job: str) -> Callable[[Deps, datetime], RunResult]:
    """A scheduled function, importing what it needs and no more."""
    if job == "detect":
        from chalicelib.detection import detect

        return detect.run
    if job == "drain":
        from chalicelib.outbox import drain

        return drain.run
    if job == "prune":
        from chalicelib.outbox import prune

        return prune.run
    raise KeyError(job)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this instance can do its work: `problem` is None, or a sentence."""

    problem: str | None
    due: int = 0
    oldest: timedelta | None = None
    last_discovery: datetime | None = None
    running: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()


def readiness() -> Readiness:
    """Look at the database, and at the scheduled functions of this process, if it runs any."""
    from chalicelib.detection.due import last_discovery
    from chalicelib.outbox.backlog import backlog

    runtime = process_runtime()
    try:
        with wired(runtime=runtime) as deps:
            waiting = backlog(deps.database, deps.clock())
            discovered = last_discovery(deps.database)
    except (SettingsError, NotAtHead) as error:
        return Readiness(str(error))
    except STORAGE_FAULTS:
        return Readiness("the database does not answer")
    broken = ", ".join(runtime.unhealthy())
    problem = f"the last run of {broken} failed" if broken else None
    return Readiness(
        problem, waiting.due, waiting.oldest, discovered, tuple(runtime.running()), tuple(runtime.pending())
    )


@lru_cache(maxsize=1)
def process_runtime() -> RuntimeState:
    """The runtime state of a long-lived process. Invocations in a cloud make their own."""
    return RuntimeState()


def refresh_catalog(
    deps: Deps, *, downloading: "Progress | None" = None, taking_over: "Progress | None" = None
) -> "SyncResult":
    """Fetch the catalogue's export and take it over. Raises ExportError, and what the database raises."""
    from chalicelib.catalog.refresh import refresh

    origin = deps.settings.ridb_url
    with ExitStack() as stack:
        ask = client(stack, origin)
        return refresh(deps.database, ask, origin, deps.clock(), downloading=downloading, taking_over=taking_over)


def secret_keys(*, make: bool) -> list[str]:
    """The keys of this instance, newest first; `make` has a local one write its key file where there is none.

    Raises SettingsError.
    """
    chosen = settings().secret_keys
    return [key.get_secret_value() for key in chosen] if chosen else read_or_make(KEY_FILE, make=make)


class _Lazy(Mapping[str, Adapter]):
    """Adapters by name, each built when it is first asked for: most commands need none."""

    def __init__(self, makers: Mapping[str, Callable[[], Adapter]]) -> None:
        self._makers = makers
        self._made: dict[str, Adapter] = {}

    def __getitem__(self, name: str) -> Adapter:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, name: object) -> bool:
        return name in self._makers


def providers(chosen: Settings, stack: ExitStack, clock: Clock) -> Mapping[str, Provider]:
    """The registry of booking sites: one entry an adapter."""

    def recreation_gov() -> Provider:
        from chalicelib.providers.recreation_gov import RecreationGov, RecreationGovConfig

        config = RecreationGovConfig(
            base_url=chosen.recreation_gov_url, user_agent=user_agent(chosen), deadline_seconds=chosen.fetch_deadline
        )
        return RecreationGov(client(stack, chosen.recreation_gov_url), config, clock)

    def sandbox(origin: str) -> Provider:
        from chalicelib.providers.recreation_gov import RECREATION_GOV, RecreationGov, RecreationGovConfig

        config = RecreationGovConfig(
            base_url=origin, user_agent=user_agent(chosen), deadline_seconds=chosen.fetch_deadline
        )
        info = replace(
            RECREATION_GOV,
            id="sandbox",
            name="Sandbox",
            campground_link=origin + "/camping/campgrounds/{campground_id}",
            campsite_link=origin + "/camping/campsites/{campsite_id}",
        )
        return RecreationGov(client(stack, origin), config, clock, info)

    makers: dict[str, Callable[[], Provider]] = {"recreation_gov": recreation_gov}
    if (origin := chosen.sandbox_site_url) is not None:
        makers["sandbox"] = lambda: sandbox(origin)
    return _Lazy(makers)


def channels(chosen: Settings, stack: ExitStack) -> Mapping[str, Channel]:
    """The registry of channels: one entry a kind."""

    def pushover(origin: str, token: SecretStr | None, kind: str, name: str) -> Channel:
        from chalicelib.channels.pushover import PUSHOVER, Pushover, PushoverConfig

        config = PushoverConfig(
            base_url=origin, app_token=token, timeout_seconds=min(LONGEST_SEND, chosen.attempt_deadline)
        )
        return Pushover(client(stack, origin), config, replace(PUSHOVER, kind=kind, name=name))

    makers: dict[str, Callable[[], Channel]] = {
        "pushover": lambda: pushover(chosen.pushover_url, chosen.pushover_app_token, "pushover", "Pushover")
    }
    if (origin := chosen.sandbox_push_url) is not None:
        makers["sandbox"] = lambda: pushover(origin, chosen.sandbox_push_token, "sandbox", "Sandbox")
    return _Lazy(makers)


def user_agent(chosen: Settings) -> str:
    """How booking sites are told who asks."""
    return f"Sitebell/{VERSION} (campsite alerts; {chosen.contact})"


def client(stack: ExitStack, origin: str) -> "httpx.Client":
    """An HTTP client for one origin, closed with the stack. It trusts no proxy variables and keeps few connections."""
    import httpx

    verify = _tls() if origin.startswith("https:") else False
    limits = httpx.Limits(max_connections=8, max_keepalive_connections=8)
    return stack.enter_context(httpx.Client(verify=verify, trust_env=False, limits=limits))


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """One context for all clients: building it costs a tenth of a second."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)
