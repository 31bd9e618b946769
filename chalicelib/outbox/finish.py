"""Finish: a row reaches a terminal state, and what a camper was told of it is kept where pruning does not reach."""

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, FromClause, Insert, Update, bindparam, func, literal, select

from chalicelib.db.tables import alert_history, notification_outbox
from chalicelib.outbox.states import Status, moved, moving


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
    values |= {"finished_at": now, "error_category": category}
    steps = _steps(connection.dialect.name, frozenset(sources), to, frozenset(values), fenced=token is not None)
    parameters = moved(row_id, values, token)
    return all(connection.execute(step, parameters).rowcount == 1 for step in steps)


@lru_cache
def _steps(
    dialect: str, sources: frozenset[Status], to: Status, columns: frozenset[str], *, fenced: bool
) -> tuple[Update | Insert, ...]:
    """The move, and its history if a row moved: one statement under PostgreSQL, whose driver's round trips cost."""
    move = moving(sources, to, columns, fenced=fenced)
    o = notification_outbox.c
    told = func.coalesce(o.told, literal({}, o.told.type))  # null: no claim of it ever got so far
    outcome, nights = o.status.label("outcome"), told.label("nights")
    kept = (o.id, o.user_id, o.scan_id, outcome, o.error_category, o.attempt_count, nights, o.finished_at)
    if dialect == "postgresql":
        return (_story_of(move.returning(*kept).cte("moved")),)
    return (move, _story_of(select(*kept).where(o.id == bindparam("row_id", type_=o.id.type)).subquery()))


def _story_of(row: FromClause) -> Insert:
    return alert_history.insert().from_select(row.c.keys(), select(row))
