"""Who asks, and what administrators changed: each change and its audit row are one transaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, select

from chalicelib.db.engine import Database
from chalicelib.db.paging import Cursor, paged
from chalicelib.db.tables import admin_audit_events, users
from chalicelib.history import iso


@dataclass(frozen=True, slots=True)
class Administrator:
    """Somebody who may see and change other people's things. `id` None is the operator at the command line."""

    id: UUID | None


OPERATOR = Administrator(None)
"""Whoever can run the command line."""

Asker = UUID | Administrator
"""Who asks: a person, who sees only their own things, or an administrator."""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One change that an administrator made.

    `actor_id` None is the operator at the command line, or somebody who has been deleted since.
    """

    id: UUID
    actor_id: UUID | None
    actor_email: str | None
    action: str
    subject_type: str
    subject_id: str
    detail: dict[str, Any]
    created_at: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "actor_id": str(self.actor_id) if self.actor_id else None,
            "actor_email": self.actor_email,
            "action": self.action,
            "subject_type": self.subject_type,
            "subject_id": self.subject_id,
            "detail": self.detail,
            "created_at": iso(self.created_at),
        }


def owner_of(asker: Asker) -> UUID | None:
    """Whose things an asker is shown; None for everybody's."""
    return None if isinstance(asker, Administrator) else asker


def note(
    connection: Connection,
    by: Asker,
    action: str,
    subject: tuple[str, UUID],
    now: datetime,
    *,
    detail: dict[str, Any] | None = None,
) -> None:
    """Write an audit row where an administrator made the change; a person's own change needs none.

    `subject` is a type and an id; `detail` holds no secret and no address.
    """
    if not isinstance(by, Administrator):
        return
    subject_type, subject_id = subject
    connection.execute(
        admin_audit_events.insert().values(
            id=uuid4(),
            actor_id=by.id,
            action=action,
            subject_type=subject_type,
            subject_id=str(subject_id),
            detail=detail or {},
            created_at=now,
        )
    )


def page(database: Database, *, after: Cursor | None = None, limit: int = 100) -> list[AuditEvent]:
    """What administrators changed, newest first; the next page begins after the last one's `Cursor`."""
    event = admin_audit_events.c
    query = select(admin_audit_events, users.c.email.label("actor_email")).outerjoin_from(
        admin_audit_events, users, event.actor_id == users.c.id
    )
    query = paged(query, event.created_at, event.id, after=after, limit=limit, newest_first=True)
    with database.reading() as connection:
        return [AuditEvent(**row) for row in connection.execute(query).mappings()]
