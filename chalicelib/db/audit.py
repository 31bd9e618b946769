"""Who asks, and what administrators changed: each change and its audit row are one transaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection

from chalicelib.db.tables import admin_audit_events


@dataclass(frozen=True, slots=True)
class Administrator:
    """Somebody who may see and change other people's things. `id` None is the operator at the command line."""

    id: UUID | None


OPERATOR = Administrator(None)
"""Whoever can run the command line."""

Asker = UUID | Administrator
"""Who asks: a person, who sees only their own things, or an administrator."""


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
