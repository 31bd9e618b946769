"""Backlog: how much is due, and for how long."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select

from chalicelib.db.engine import Database
from chalicelib.db.tables import notification_outbox
from chalicelib.outbox.states import WAITING


@dataclass(frozen=True, slots=True)
class Backlog:
    """Alerts that are due now; `oldest` is how long the longest has been (None: nothing is due)."""

    due: int
    oldest: timedelta | None


def backlog(database: Database, now: datetime) -> Backlog:
    """Count what is due at `now`."""
    next_attempt_at = notification_outbox.c.next_attempt_at
    statement = select(func.count(), func.min(next_attempt_at, type_=next_attempt_at.type)).where(
        WAITING, next_attempt_at <= now
    )
    with database.reading() as connection:
        due, oldest = connection.execute(statement.select_from(notification_outbox)).one()
    return Backlog(due, now - oldest if oldest else None)
