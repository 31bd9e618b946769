"""Rows drained a second into an instant sink, beside the same two commits a row in bare SQL on the same driver.

Bare: a claim is one UPDATE … RETURNING of the oldest due row, committed; an acknowledgement is one UPDATE, committed.
No joins, no revalidation, no history, no sink.
"""

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pg8000.dbapi
from sqlalchemy import make_url

from bench.rows import Rows, fill
from bench.table import Aim, Line, ratio_of
from chalicelib.channels.contract import ChannelInfo
from chalicelib.db.engine import Database
from chalicelib.db.vault import Vault, new_key
from chalicelib.deps import Deps
from chalicelib.history import utc_now
from chalicelib.outbox import drain
from tests.support.standins import SERVICE, StandInChannel, make_settings

AIM = Aim(0.5, least=True)
ROUNDS = 5
ROWS = {"SQLite": 200, "PostgreSQL": 120}


@dataclass(frozen=True, slots=True)
class Case:
    """Workers of the drain and of the bare loop; `concurrency` is the sink's, None for any."""

    what: str
    workers: int
    bare_workers: int
    concurrency: int | None


CASES = (
    Case("1 worker", 1, 1, None),
    Case("4 workers", 4, 4, None),
    Case("4 workers, 2 sends at once", 4, 2, 2),
)


def measure(urls: Mapping[str, str]) -> list[Line]:
    """Both halves of every case, by turns, over several rounds."""
    return [line for name, url in urls.items() for line in _measure_on(name, url)]


def _measure_on(name: str, url: str) -> list[Line]:
    measured: dict[Case, list[float]] = {case: [] for case in CASES}
    bare: dict[Case, list[float]] = {case: [] for case in CASES}
    connected = {"SQLite": _bare_sqlite, "PostgreSQL": _bare_postgresql}[name]
    with closing(Database(url)) as database:
        vault = Vault([new_key()])
        rows = fill(database, vault, ROWS[name])
        for _ in range(ROUNDS):
            for case in CASES:
                rows.put_back()
                bare[case].append(_bare_rate(rows, [connected(url) for _ in range(case.bare_workers)]))
                rows.put_back()
                measured[case].append(_rate(database, vault, rows, case))
    return [
        Line(
            f"drain, {name}, {case.what}",
            f"{median(measured[case]):.0f} rows/s",
            f"{median(bare[case]):.0f} rows/s",
            ratio_of(measured[case], bare[case]),
            AIM,
        )
        for case in CASES
    ]


def _rate(database: Database, vault: Vault, rows: Rows, case: Case) -> float:
    info: ChannelInfo = replace(SERVICE, concurrency=case.concurrency)
    sink = StandInChannel(info=info)
    deps = Deps(make_settings({}), database, vault, providers={}, channels={"pushover": sink})
    began = time.perf_counter()
    result = drain.run(deps, utc_now() + timedelta(minutes=10), workers=case.workers)
    seconds = time.perf_counter() - began
    if len(sink.sent) != rows.count or result.counts["sent"] != rows.count:
        raise RuntimeError(f"not everything was sent: {result.counts}")
    return rows.count / seconds


# --- the bare loop ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bare:
    """A driver's connection, already open, with the two statements in its dialect."""

    connection: Any
    claim: str
    acknowledge: str
    stored: Callable[[object], object]

    def drain(self) -> int:
        """Claim and acknowledge until nothing is due; gives how many."""
        done, stored = 0, self.stored
        cursor = self.connection.cursor()
        while True:
            token, now = stored(uuid4()), datetime.now(UTC)
            cursor.execute(self.claim, (token, stored(now + timedelta(seconds=40)), stored(now)))
            row = cursor.fetchone()
            self.connection.commit()
            if row is None:
                return done
            cursor.execute(self.acknowledge, (stored(datetime.now(UTC)), "m-1", row[0], token))
            if cursor.rowcount != 1:
                raise RuntimeError("a claimed row was lost")
            self.connection.commit()
            done += 1


def _bare_rate(rows: Rows, bares: Sequence[Bare]) -> float:
    done: list[int] = []

    def work(bare: Bare) -> None:
        done.append(bare.drain())

    threads = [Thread(target=work, args=(bare,)) for bare in bares]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    for bare in bares:
        bare.connection.close()
    if sum(done) != rows.count:
        raise RuntimeError(f"the bare loop did {sum(done)} of {rows.count} rows")
    return rows.count / seconds


CLAIM = """
    UPDATE notification_outbox
    SET status = 'sending', claim_token = ?, attempt_count = attempt_count + 1, next_attempt_at = ?
    WHERE id = (
        SELECT id FROM notification_outbox
        WHERE status IN ('pending', 'retry') AND next_attempt_at <= ?
        ORDER BY next_attempt_at, id LIMIT 1 {lock}
    )
    RETURNING id, payload
"""
ACKNOWLEDGE = """
    UPDATE notification_outbox SET status = 'sent', finished_at = ?, provider_message_id = ?
    WHERE id = ? AND claim_token = ? AND status = 'sending'
"""


def _bare_sqlite(url: str) -> Bare:
    connection = sqlite3.connect(
        make_url(url).database or "", timeout=5, isolation_level="IMMEDIATE", check_same_thread=False
    )
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")

    def stored(value: object) -> object:
        if isinstance(value, datetime):
            return value.replace(tzinfo=None).isoformat(" ")
        return value.hex if isinstance(value, UUID) else value

    return Bare(connection, CLAIM.format(lock=""), ACKNOWLEDGE, stored)


def _bare_postgresql(url: str) -> Bare:
    place = make_url(url)
    connection = pg8000.dbapi.connect(  # pyright: ignore[reportUnknownMemberType]
        place.username or "",
        host=place.host or "",
        port=place.port or 5432,
        database=place.database,
        ssl_context=False,
    )
    claim = CLAIM.format(lock="FOR UPDATE SKIP LOCKED").replace("?", "%s")
    return Bare(connection, claim, ACKNOWLEDGE.replace("?", "%s"), lambda value: value)
