"""What the hot paths ask of the database: every statement, by transaction, and the indexes that serve them."""

import re
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Connection, event, text

from chalicelib.db.engine import Database
from chalicelib.db.tables import metadata
from chalicelib.outbox.backlog import backlog
from chalicelib.outbox.claim import claim_next
from chalicelib.outbox.drain import recover
from tests.support.live import START, Live

TABLE = re.compile(rf"\b({'|'.join(sorted(metadata.tables, key=len, reverse=True))})\b")

INNER = re.compile(r"\b(UPDATE|INSERT|DELETE) (?:INTO |FROM )?(\w+)")
"""What a statement in several parts writes."""


@dataclass
class Asked:
    """Statements as a database saw them, and how many rows each one touched."""

    transactions: list[list[str]] = field(default_factory=list[list[str]])
    written: Counter[str] = field(default_factory=Counter[str])
    statements: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    def count(self) -> int:
        return sum(map(len, self.transactions))


@contextmanager
def asked(database: Database) -> Generator[Asked]:
    """Note each statement by its verb and the first table that it names."""
    found = Asked()

    def on_begin(_: Any) -> None:
        found.transactions.append([])

    def on_execute(_: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        verb = statement.split(maxsplit=1)[0]
        if verb == "BEGIN":  # SQLite's, which SQLAlchemy sends as a statement
            return
        table = TABLE.search(statement)
        name = table[1] if table else "?"
        inner = INNER.findall(statement) if verb == "WITH" else [(verb, name)]
        found.transactions[-1].append(" + ".join(f"{verb} {name}" for verb, name in inner))
        found.statements.append((statement, parameters))
        if verb != "SELECT":
            found.written[name] += cursor.rowcount

    event.listen(database.engine, "begin", on_begin)
    event.listen(database.engine, "after_cursor_execute", on_execute)
    try:
        yield found
    finally:
        event.remove(database.engine, "begin", on_begin)
        event.remove(database.engine, "after_cursor_execute", on_execute)


# --- statements -------------------------------------------------------------------------------------------


def test_an_unchanged_check_writes_its_target_and_draws_on_the_budget(live: Live) -> None:
    live.camper()
    live.detect()
    with asked(live.deps.database) as found:
        assert live.checked_again().counts["targets_checked"] == 1
    assert found.transactions == [
        ["SELECT unique_targets"],  # once a run: what is due
        ["SELECT provider_states"],  # once a run and provider: is the breaker closed?
        ["UPDATE unique_targets"],  # the lease
        ["UPDATE provider_states"],  # the budget, for the one request
        ["UPDATE unique_targets"],  # nothing new: the same row again, and the lease given back
    ]
    assert found.written == {"unique_targets": 2, "provider_states": 1}


def test_each_further_unchanged_target_asks_three_things(live: Live) -> None:
    user_id, _ = live.camper()
    live.detect()
    with asked(live.deps.database) as alone:
        live.checked_again()
    live.scan(user_id, dates=(date(2027, 8, 2), date(2027, 8, 9)))
    live.checked_again()
    with asked(live.deps.database) as both:
        assert live.checked_again().counts["targets_checked"] == 2
    assert both.count() - alone.count() == 3  # lease, budget, check
    assert both.written - alone.written == {"unique_targets": 2, "provider_states": 1}


def test_targets_that_share_a_document_draw_on_the_budget_once(live: Live) -> None:
    user_id, _ = live.camper()
    live.scan(user_id, dates=(date(2027, 7, 2), date(2027, 7, 9)))
    live.detect()
    with asked(live.deps.database) as found:
        counts = live.checked_again().counts
    assert (counts["targets_checked"], counts["requests"]) == (2, 1)
    assert found.written == {"unique_targets": 4, "provider_states": 1}


ACKNOWLEDGED = {
    "sqlite": ["UPDATE notification_outbox", "INSERT alert_history"],
    "postgresql": ["UPDATE notification_outbox + INSERT alert_history"],  # one round trip for both
}


def test_a_drained_alert_takes_two_transactions(live: Live) -> None:
    live.camper()
    for campsite_id in ("103", "104"):  # the first alert makes the row of its kind of channel
        live.drain()
        live.site.open("100", campsite_id, date(2027, 7, 9))
        assert live.checked_again().counts["intents"] == 1
    live.drain()
    live.site.open("100", "105", date(2027, 7, 9))
    live.checked_again()
    with asked(live.deps.database) as found:
        assert live.drain().counts["sent"] == 1
    assert found.transactions == [
        # Once a run: interrupted attempts become due again, or failed; how many workers are needed.
        ["UPDATE notification_outbox", "SELECT notification_outbox"],
        ["SELECT notification_outbox"],
        # The claim: the oldest due row with all it refers to, the turn of its kind, the attempt.
        ["SELECT notification_outbox", "SELECT channel_states", "UPDATE notification_outbox"],
        # The acknowledgement: the outcome, and what is kept of it.
        ACKNOWLEDGED[live.deps.database.dialect],
        # Nothing more is due; what remains.
        ["SELECT notification_outbox"],
        ["SELECT notification_outbox"],
    ]


def test_an_alert_of_an_unlimited_kind_takes_no_turn(live: Live) -> None:
    channel = live.deps.channels["pushover"]

    class Unlimited:
        info = replace(channel.info, concurrency=None)
        configured = channel.configured
        check_recipient = channel.check_recipient
        send = channel.send

    live = replace(live, deps=replace(live.deps, channels={"pushover": Unlimited()}))
    live.camper()
    live.site.open("100", "103", date(2027, 7, 9))
    live.detect()
    with asked(live.deps.database) as found:
        assert live.drain().counts["sent"] == 1
    assert found.transactions[2:4] == [
        ["SELECT notification_outbox", "UPDATE notification_outbox"],
        ACKNOWLEDGED[live.deps.database.dialect],
    ]


# --- indexes ----------------------------------------------------------------------------------------------

ALERTS, PEOPLE = 50_000, 1_000
ID = {"sqlite": "printf('%032x', {})", "postgresql": "lpad(to_hex({}), 32, '0')::uuid"}
MANY = [
    "INSERT INTO providers (id, name) SELECT 'many', 'Many'",
    "INSERT INTO campgrounds (provider, campground_id, updated_at) SELECT 'many', n, {now} FROM {people}",
    "INSERT INTO users (id, email, created_at) SELECT {id}, n, {now} FROM {people}",
    """INSERT INTO notification_channels (id, user_id, kind, credentials, created_at)
       SELECT {id}, {id}, 'pushover', '', {now} FROM {people}""",
    """INSERT INTO unique_targets (id, provider, campground_id, start_date, end_date, created_at, last_checked_at)
       SELECT {id}, 'many', n, '2027-07-01', '2027-07-30', {now}, {now} FROM {people}""",
    """INSERT INTO scan_results (target_id, campsite_id, campsite, nights)
       SELECT {id}, 'one', '{{}}', '{{}}' FROM {people}""",
    "INSERT INTO user_scans (id, user_id, target_id, created_at) SELECT {id}, {id}, {id}, {now} FROM {people}",
    # One alert in a hundred waits, one has an attempt under way, one is to be pruned; all others were told.
    """INSERT INTO notification_outbox (id, detection_id, user_id, scan_id, target_id, delivery_key, payload, status,
                                        next_attempt_at, created_at, finished_at)
       SELECT {id}, {id}, {owner}, {owner}, {owner}, 'summary', '{{}}',
              CASE n % 100 WHEN 0 THEN 'pending' WHEN 1 THEN 'sending' ELSE 'sent' END, {now}, {now},
              CASE WHEN n % 100 = 2 THEN {long_ago} WHEN n % 100 > 2 THEN {now} END FROM {alerts}""",
]


def fill(database: Database) -> None:
    """50,000 alerts of a thousand people."""
    moment = {"sqlite": "'{:%Y-%m-%d %H:%M:%S}.000000'", "postgresql": "'{:%Y-%m-%d %H:%M:%S}Z'::timestamptz"}
    words = {
        "id": ID[database.dialect].format("n"),
        "owner": ID[database.dialect].format(f"(n % {PEOPLE})"),
        "now": moment[database.dialect].format(START - timedelta(minutes=1)),
        "long_ago": moment[database.dialect].format(START - timedelta(days=2)),
    }
    numbers = (
        "(WITH RECURSIVE up(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up WHERE n + 1 < {}) SELECT n FROM up) AS {}"
    )
    words |= {name: numbers.format(count, name) for name, count in (("people", PEOPLE), ("alerts", ALERTS))}
    with database.transaction() as connection:
        if database.dialect == "postgresql":
            connection.execute(text("SET LOCAL session_replication_role = replica"))  # the keys are right: no check
        for statement in MANY:
            connection.exec_driver_sql(statement.format(**words))
        connection.execute(text("ANALYZE"))


def plans(database: Database, use_case: Callable[[], object]) -> list[str]:
    """Run a use case, and have the database explain each of its statements; what is inner is indented."""
    with asked(database) as found:
        use_case()
    with database.reading() as connection:
        return [_plan(connection, statement, parameters) for statement, parameters in found.statements]


def _plan(connection: Connection, statement: str, parameters: Any) -> str:
    if connection.dialect.name == "postgresql":
        return "\n".join(connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars())
    steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    return "\n".join(f"{'  ' if parent else ''}{step}" for _, parent, _, step in steps)


def test_fifty_thousand_alerts_are_found_by_index(live: Live) -> None:
    database = live.deps.database
    fill(database)

    claimed = plans(database, lambda: claim_next(live.deps, START, ()))
    assert "ix_notification_outbox_due" in claimed[0]
    assert not sorts_before(claimed[0], "ix_notification_outbox_due")
    (counted,) = plans(database, lambda: backlog(database, START))
    assert "ix_notification_outbox_" in counted  # either serves
    recovered = plans(database, lambda: recover(live.deps, START))
    assert "ix_notification_outbox_status_next_attempt_at" in recovered[0]
    pruned = plans(database, live.prune)
    assert "ix_notification_outbox_finished_at" in pruned[0]

    for plan in [*claimed, counted, *recovered]:
        assert not WALK.search(plan), plan


WALK = re.compile(r"Seq Scan on (?!channel_states\b)|\bSCAN (?!CONSTANT|\()\w+(?! USING)\b")
"""Reading a table from one end to the other."""


def sorts_before(plan: str, index: str) -> bool:
    """Whether what the index finds is sorted afterwards: PostgreSQL's plans are read inwards, SQLite's downwards."""
    return "Sort" in plan.partition(index)[0] or bool(re.search("^USE TEMP B-TREE", plan, re.MULTILINE))
