"""One machine: a web server and the scheduled functions in one process, for a laptop or a Raspberry Pi."""

import logging
import re
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from chalice.app import Chalice
from chalice.config import Config
from chalice.local import ChaliceRequestHandler, LocalDevServer

from chalicelib import wiring
from chalicelib.deps import Deps
from chalicelib.history import JobAttempt, RunResult
from chalicelib.runtime import logs
from chalicelib.settings import settings

log = logging.getLogger(__name__)

LONGEST_RUN = {"detect": 60.0, "drain": 120.0, "prune": 300.0}
"""Seconds that a run may take, as in `.chalice/config.json`."""

CATALOG = "catalog"
UNITS = {"minute": 60, "hour": 3600, "day": 86400}


def serve(host: str, port: int) -> None:
    """Serve the app and run its schedules until Ctrl-C or SIGTERM.

    Raises SettingsError, NotAtHead, and OSError for a port that is taken.
    """
    logs.set_up()
    with wiring.wired():  # what is set up wrongly is said now and not every minute
        pass
    with running(host, port) as url:
        log.info("Sitebell is at %s (Ctrl-C stops it)", url)
        wait_for_the_end()


@contextmanager
def running(host: str, port: int) -> Generator[str]:
    """The web server and the schedules, on threads of their own; gives the address. Port 0 takes a free one."""
    from app import app

    with ExitStack() as stack:
        try:
            server = LocalDevServer(app, Config(chalice_stage="dev"), host, port, handler_cls=_Handler).server
        except OSError as error:
            error.filename = f"{host}:{port}"  # or nobody would know which address is in use
            raise
        stack.callback(server.server_close)
        web = Thread(target=server.serve_forever, name="web", daemon=True)
        web.start()
        stack.callback(server.shutdown)
        scheduler = Scheduler([*schedules(app), *_catalog_schedule()])
        stack.callback(scheduler.stop)
        scheduler.start()
        yield f"http://{host}:{server.server_address[1]}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A scheduled function and the seconds between two of its runs."""

    job: str
    seconds: int


def schedules(app: Chalice) -> list[Schedule]:
    """The schedules that stand in `app.py`, which Chalice's own local server never fires."""
    return [Schedule(source.name, _seconds(source)) for source in app.event_sources]


def _catalog_schedule() -> list[Schedule]:
    hours = settings().catalog_refresh_hours
    return [Schedule(CATALOG, int(hours * 3600))] if hours else []


def _seconds(source: Any) -> int:
    match = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", source.schedule_expression.to_string())
    if match is None:
        raise ValueError("a schedule that is no rate")
    return int(match[1]) * UNITS[match[2]]


class Scheduler:
    """Runs each scheduled function at its rate, on a thread of its own; what detect commits wakes drain at once."""

    def __init__(self, schedules: list[Schedule]) -> None:
        self._stopped = False
        self._wakes = {schedule.job: Event() for schedule in schedules}
        self._threads = [
            Thread(target=self._keep_running, args=(schedule,), name=schedule.job, daemon=True)
            for schedule in schedules
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let runs under way end, and begin no more."""
        self._stopped = True
        for wake in self._wakes.values():
            wake.set()
        for thread in self._threads:
            thread.join(timeout=10)

    def _keep_running(self, schedule: Schedule) -> None:
        wake = self._wakes[schedule.job]
        while not self._stopped:
            self._run(schedule.job)
            wake.wait(schedule.seconds)
            if not self._stopped:
                wake.clear()

    def ask(self, job: str) -> None:
        """Have a job run as soon as it is free; asking twice is asking once."""
        wiring.process_runtime().ask(job)
        self._wakes[job].set()

    def _run(self, job: str) -> None:
        try:
            with wiring.wired(runtime=wiring.process_runtime(), wake=lambda: self.ask("drain")) as deps:
                if job == CATALOG:
                    refresh_catalog(deps)
                else:
                    tell(wiring.run(job, deps, LONGEST_RUN[job]))
        except Exception:  # the next turn may do better, and the other functions must go on
            log.exception("%s could not run", job)


def refresh_catalog(deps: Deps) -> None:
    """Refresh the catalogue, and remember how that went."""
    started, job_id, outcome = deps.clock(), uuid4(), "failed"
    deps.runtime.run_started(CATALOG)
    try:
        result = wiring.refresh_catalog(deps)
        outcome = "success"
        log.info("catalogue refreshed: %d campgrounds", result.campgrounds)
    finally:
        finished = deps.clock()
        deps.runtime.run_finished(CATALOG, at=finished, healthy=True)  # an old catalogue still serves
        deps.runtime.add(JobAttempt(job_id, CATALOG, 1, started, finished, outcome))


def tell(result: RunResult) -> None:
    """Log a run that did something."""
    did = {name.replace("_", " "): count for name, count in result.counts.items() if count}
    level = logging.INFO if result.outcome == "success" else logging.WARNING
    if did or result.outcome == "error":
        log.log(
            level, "%-6s %s", result.job, ", ".join(f"{name} {count}" for name, count in did.items()) or result.outcome
        )


class _Handler(ChaliceRequestHandler):
    """Chalice's handler, sending head and body as one packet, and quiet."""

    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
        log.debug(format, *args)


def wait_for_the_end() -> None:
    """Until Ctrl-C or SIGTERM."""
    ended = Event()

    def end(_number: int, _frame: object) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    ended.wait()
    log.info("stopping")
