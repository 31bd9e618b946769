"""The outbox as an operator reads it: rows in the order in which they were written, or back, and one row whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, select

from chalicelib.db.paging import Cursor, paged
from chalicelib.db.tables import notification_outbox
from chalicelib.deps import Deps
from chalicelib.errors import NotFound
from chalicelib.history import iso


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One row without its payload."""

    id: UUID
    status: str
    attempt_count: int
    delivery_key: str
    error_category: str | None
    next_attempt_at: datetime
    finished_at: datetime | None
    created_at: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "status": self.status,
            "attempt_count": self.attempt_count,
            "delivery_key": self.delivery_key,
            "error_category": self.error_category,
            "next_attempt_at": iso(self.next_attempt_at),
            "finished_at": iso(self.finished_at) if self.finished_at else None,
            "created_at": iso(self.created_at),
        }


@dataclass(frozen=True, slots=True)
class OutboxDetail:
    """One row with all that is known of it. `told` is what the last claim told or would have, by campsite id."""

    row: OutboxRow
    references: dict[str, UUID | None]
    channel_kind: str | None
    provider_message_id: str | None
    payload: dict[str, Any]
    told: dict[str, list[str]] | None

    def to_json(self) -> dict[str, Any]:
        return {
            **self.row.to_json(),
            **{name: str(value) if value else None for name, value in self.references.items()},
            "channel_kind": self.channel_kind,
            "provider_message_id": self.provider_message_id,
            "payload": self.payload,
            "told": self.told,
        }


_LISTED = (
    "id",
    "status",
    "attempt_count",
    "delivery_key",
    "error_category",
    "next_attempt_at",
    "finished_at",
    "created_at",
)
_REFERENCES = ("detection_id", "user_id", "scan_id", "target_id", "channel_id")


def page(
    deps: Deps,
    *,
    status: str | None = None,
    after: Cursor | None = None,
    limit: int = 100,
    newest_first: bool = False,
) -> Sequence[OutboxRow]:
    """Rows of one status or of all, oldest first unless said; the next page begins after the last one's `Cursor`."""
    row = notification_outbox.c
    query = select(*(row[name] for name in _LISTED))
    if status is not None:
        query = query.where(row.status == status)
    query = paged(query, row.created_at, row.id, after=after, limit=limit, newest_first=newest_first)
    with deps.database.reading() as connection:
        return [_row(found) for found in connection.execute(query).mappings()]


def show(deps: Deps, row_id: UUID) -> OutboxDetail:
    """One row. Raises NotFound, which is also what a row becomes a day after its end."""
    query = select(notification_outbox).where(notification_outbox.c.id == row_id)
    with deps.database.reading() as connection:
        found = connection.execute(query).mappings().first()
    if found is None:
        raise NotFound("outbox row", row_id)
    return OutboxDetail(
        row=_row(found),
        references={name: found[name] for name in _REFERENCES},
        channel_kind=found["channel_kind"],
        provider_message_id=found["provider_message_id"],
        payload=found["payload"],
        told=found["told"],
    )


def _row(found: RowMapping) -> OutboxRow:
    return OutboxRow(**{name: found[name] for name in _LISTED})
