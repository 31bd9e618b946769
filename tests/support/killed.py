"""Processes that are killed, without a chance to clean up, between any two steps of a scheduled function.

A fork server with everything imported makes each such process in a few milliseconds.
"""

import multiprocessing
import os
import signal
from dataclasses import dataclass
from datetime import datetime, timedelta
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr
from sqlalchemy import event

from chalicelib import wiring
from chalicelib.channels.pushover import Pushover, PushoverConfig
from chalicelib.db.engine import Database
from chalicelib.db.vault import Vault
from chalicelib.deps import Deps
from chalicelib.providers.recreation_gov import RecreationGov, RecreationGovConfig
from tests.support.standins import make_settings

_processes = multiprocessing.get_context("forkserver")


def _serving() -> None:
    """Start the fork server, if it is not there, where it can import this module: it is not given pytest's path."""
    _processes.set_forkserver_preload(["tests.support.killed"])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


@dataclass(frozen=True)
class Instance:
    """What another process needs to run the same instance; `now` is where its clock stands still."""

    database_url: str
    keys: list[str]
    site_url: str
    push_url: str
    app_token: str
    now: datetime


def run_apart(instance: Instance, job: str, die_at: int | None = None) -> int:
    """Run a scheduled function in a process of its own; gives the steps it came through, or -9 where it was killed.

    `die_at` counts steps from 1: each statement (its BEGIN too) and each commit is one; the process dies just before.
    """
    _serving()
    steps = _processes.Value("i", 0)
    process = _processes.Process(target=_run, args=(instance, job, die_at, steps))
    process.start()
    process.join(60)
    assert process.exitcode in {0, -signal.SIGKILL}
    return int(steps.value) if process.exitcode == 0 else -signal.SIGKILL


def start_apart(instance: Instance, job: str) -> Any:
    """The same, going on meanwhile; the caller joins the process it gets."""
    _serving()
    process = _processes.Process(target=_run, args=(instance, job))
    process.start()
    return process


def _run(instance: Instance, job: str, die_at: int | None = None, steps: Any = None) -> None:
    settings = make_settings(
        {
            "recreation_gov_url": instance.site_url,
            "recreation_gov_per_minute": 600,
            "pushover_url": instance.push_url,
            "pushover_app_token": SecretStr(instance.app_token),
            "attempt_deadline": 5,
        }
    )
    database = Database(instance.database_url)

    def step(*_: Any) -> None:
        steps.value += 1
        if steps.value == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    if steps is not None:
        event.listen(database.engine, "before_cursor_execute", step)
        event.listen(database.engine, "commit", step)
    with httpx.Client(verify=False, trust_env=False) as client:
        provider = RecreationGov(
            client, RecreationGovConfig(base_url=instance.site_url, user_agent="Sitebell/test", deadline_seconds=5)
        )
        channel = Pushover(client, PushoverConfig(base_url=instance.push_url, app_token=settings.pushover_app_token))
        deps = Deps(
            settings=settings,
            database=database,
            vault=Vault(instance.keys),
            providers={"recreation_gov": provider},
            channels={"pushover": channel},
            clock=lambda: instance.now,
        )
        result = wiring.run(job, deps, 120)
    database.close()
    assert result.outcome == "success", result
    assert result.finished_at - result.started_at < timedelta(minutes=2)
