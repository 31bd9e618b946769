"""A drain in a process of its own, as a second invocation or server would run one."""

import multiprocessing
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import httpx
from pydantic import SecretStr

from chalicelib.channels.pushover import Pushover, PushoverConfig
from chalicelib.db.engine import Database
from chalicelib.db.vault import Vault
from chalicelib.deps import Deps
from chalicelib.outbox import drain
from tests.support.live import APP_TOKEN
from tests.support.standins import HandClock, make_settings


def drain_in_process(database_url: str, push_url: str, vault_key: str, now: datetime, results: Any) -> None:
    """Run one drain and put its outcome and counts on the queue `results`."""
    with closing(Database(database_url)) as database, httpx.Client(verify=False, trust_env=False) as client:
        config = PushoverConfig(base_url=push_url, app_token=SecretStr(APP_TOKEN), timeout_seconds=10)
        deps = Deps(
            settings=make_settings({"attempt_deadline": 20}),
            database=database,
            vault=Vault([vault_key]),
            providers={},
            channels={"pushover": Pushover(client, config)},
            clock=HandClock(now),
        )
        database.check_head()  # what a drain needs is imported and connected by now
        result = drain.run(deps, now + timedelta(minutes=5))
        results.put((result.outcome, dict(result.counts)))


def drain_twice_at_once(
    database_url: str, push_url: str, vault_key: str, now: datetime
) -> Sequence[tuple[str, dict[str, int]]]:
    """Two processes drain the same outbox; gives both results."""
    context = multiprocessing.get_context("forkserver")
    results: Any = context.Queue()
    arguments = (database_url, push_url, vault_key, now, results)
    processes = [context.Process(target=drain_in_process, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    found = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(30)
    results.close()
    results.join_thread()
    return found
