"""Prune: what is over goes, in batches that each commit. Nothing that still waits is ever deleted, however old."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Table, delete, exists, func, select, tuple_

from chalicelib.db.tables import (
    alert_history,
    api_tokens,
    glimpses,
    idempotency_keys,
    notification_outbox,
    sessions,
    sign_in_limits,
    unique_targets,
    user_scans,
)
from chalicelib.deps import Deps
from chalicelib.history import RunResult

TERMINAL_KEPT = timedelta(hours=24)
HISTORY_KEPT = timedelta(days=90)
UNFOLLOWED_KEPT = timedelta(days=30)
REVOKED_KEPT = timedelta(days=30)
ANSWERS_KEPT = timedelta(hours=24)
GLIMPSES_KEPT = timedelta(hours=1)
BATCH = 500


def run(deps: Deps, until: datetime) -> RunResult:
    """Delete terminal outbox rows after 24 hours, alert history after 90 days, targets not followed for 30.

    A target's results go with it. Of what the edge remembers go sessions and sign-in limits that have ended, tokens
    revoked 30 days ago, answers to repeated requests after 24 hours, and glimpses after one hour. Stops at `until`; the
    next run goes on. Raises what the database raises.
    """
    run_id, started = uuid4(), deps.clock()
    deleted = 0
    for table, over in _over(started):
        while deps.clock() < until:
            count = _delete_batch(deps, table, over)
            deleted += count
            if count < BATCH:
                break
    return RunResult("prune", run_id, started, deps.clock(), "success", {"deleted": deleted})


def _over(now: datetime) -> Iterator[tuple[Table, Any]]:
    """What may go, as conditions that an index serves; targets, of which there are few, are read whole."""
    yield notification_outbox, notification_outbox.c.finished_at <= now - TERMINAL_KEPT
    yield alert_history, alert_history.c.finished_at <= now - HISTORY_KEPT
    yield sessions, sessions.c.expires_at <= now
    yield sign_in_limits, sign_in_limits.c.window_ends_at <= now
    yield api_tokens, api_tokens.c.revoked_at <= now - REVOKED_KEPT
    yield idempotency_keys, idempotency_keys.c.begun_at <= now - ANSWERS_KEPT
    yield glimpses, glimpses.c.fetched_at <= now - GLIMPSES_KEPT
    t = unique_targets.c
    followed = exists().where(user_scans.c.target_id == t.id)
    yield unique_targets, ~followed & (func.coalesce(t.last_attempt_at, t.created_at) <= now - UNFOLLOWED_KEPT)


def _delete_batch(deps: Deps, table: Table, over: Any) -> int:
    """Delete some rows in a transaction of their own; rows that somebody holds are left for the next run."""
    key = tuple_(*table.primary_key.columns)
    batch = select(*table.primary_key.columns).where(over).limit(BATCH).with_for_update(skip_locked=True)
    with deps.database.transaction() as connection:
        # In two steps: as a subselect, PostgreSQL would walk the whole table for each batch.
        keys = [tuple(row) for row in connection.execute(batch)]
        return connection.execute(delete(table).where(key.in_(keys))).rowcount if keys else 0
