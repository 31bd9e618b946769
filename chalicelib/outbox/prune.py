"""Prune: what is over goes, in batches that each commit. Nothing that still waits is ever deleted, however old."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Table, delete, exists, func, select

from chalicelib.db.tables import alert_history, notification_outbox, unique_targets, user_scans
from chalicelib.deps import Deps
from chalicelib.history import RunResult

log = logging.getLogger(__name__)

TERMINAL_KEPT = timedelta(hours=24)
HISTORY_KEPT = timedelta(days=90)
UNFOLLOWED_KEPT = timedelta(days=30)
BATCH = 500


def run(deps: Deps, until: datetime) -> RunResult:
    """Delete terminal outbox rows after 24 hours, alert history after 90 days, targets not followed for 30.

    A target's results go with it. Stops at `until`; the next run goes on. Raises what the database raises.
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
    """What may go, as conditions that an index serves."""
    yield notification_outbox, notification_outbox.c.finished_at <= now - TERMINAL_KEPT
    yield alert_history, alert_history.c.finished_at <= now - HISTORY_KEPT
    t = unique_targets.c
    followed = exists().where(user_scans.c.target_id == t.id)
    yield unique_targets, ~followed & (func.coalesce(t.last_attempt_at, t.created_at) <= now - UNFOLLOWED_KEPT)


def _delete_batch(deps: Deps, table: Table, over: Any) -> int:
    """Delete some rows in a transaction of their own; rows that somebody holds are left for the next run."""
    batch = select(table.c.id).where(over).limit(BATCH).with_for_update(skip_locked=True)
    with deps.database.transaction() as connection:
        # In two steps: as a subselect, PostgreSQL would walk the whole table for each batch.
        ids = connection.execute(batch).scalars().all()
        return connection.execute(delete(table).where(table.c.id.in_(ids))).rowcount if ids else 0
