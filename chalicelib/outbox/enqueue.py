"""Enqueue: an intent becomes a row, inside the transaction of the change that caused it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Connection

from chalicelib.db.tables import notification_outbox
from chalicelib.outbox.payload import NotificationDTO


@dataclass(frozen=True, slots=True)
class Intent:
    """Something that should be told to one person. `delivery_key`: `summary`, or the provider's campsite id."""

    detection_id: UUID
    user_id: UUID
    scan_id: UUID
    target_id: UUID
    delivery_key: str
    payload: NotificationDTO


def enqueue(connection: Connection, intents: Iterable[Intent], now: datetime) -> None:
    """Insert the intents, due at once. Both they and the caller's change are committed, or neither."""
    rows = [
        {
            "id": uuid4(),
            "detection_id": intent.detection_id,
            "user_id": intent.user_id,
            "scan_id": intent.scan_id,
            "target_id": intent.target_id,
            "delivery_key": intent.delivery_key,
            "payload": intent.payload.to_json(),
            "status": "pending",
            "attempt_count": 0,
            "next_attempt_at": now,
            "created_at": now,
        }
        for intent in intents
    ]
    if rows:
        connection.execute(notification_outbox.insert(), rows)
