"""Finish: a row reaches a terminal state, and what a camper was told of it is kept where pruning does not reach."""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, literal, select

from chalicelib.db.tables import alert_history, notification_outbox
from chalicelib.outbox.states import Status, move


def finish(
    connection: Connection,
    row_id: UUID,
    sources: Collection[Status],
    to: Status,
    now: datetime,
    *,
    category: str | None = None,
    token: UUID | None = None,
    **values: Any,
) -> bool:
    """Move a row to a terminal state and write its history, in the caller's transaction.

    `token` is what an acknowledgement presents. False: the row had been moved by somebody else; nothing was done.
    """
    o = notification_outbox.c
    statement = move(sources, to, token=token, finished_at=now, error_category=category, **values)
    if not connection.execute(statement.where(o.id == row_id)).rowcount:
        return False
    columns = ["id", "user_id", "scan_id", "outcome", "error_category", "attempt_count", "nights", "finished_at"]
    told = func.coalesce(o.told, literal({}, o.told.type))  # null: no claim of it ever got so far
    kept = (o.id, o.user_id, o.scan_id, o.status, o.error_category, o.attempt_count, told)
    story = select(*kept, literal(now, o.finished_at.type)).where(o.id == row_id)
    connection.execute(alert_history.insert().from_select(columns, story))
    return True
