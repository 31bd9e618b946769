"""The statement of a claim: one due row, and with it all that its revalidation needs, in one round trip."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Connection, RowMapping, String, TextualSelect, Uuid, bindparam, text

from chalicelib.db.scan_rows import FILTER_COLUMNS
from chalicelib.db.tables import (
    channel_states,
    notification_channels,
    notification_outbox,
    unique_targets,
    user_scans,
    users,
)
from chalicelib.db.types import Json, UtcDateTime
from chalicelib.outbox.states import WAITING_STATUSES

OUTBOX = ("id", "user_id", "scan_id", "target_id", "payload", "status", "attempt_count")

NEWER = """l.scan_id = o.scan_id AND l.status IN ('pending', 'retry', 'sending', 'sent')
               AND (l.created_at, l.id) > (o.created_at, o.id)"""
"""A newer alert `l` of the scan of alert `o`: one that was told, is being told, or may be."""

# The channel is the scan's own, else its owner's oldest enabled one. Rows of parked kinds are passed over. `results`
# are the target's latest: [nights, unknown_since] by campsite id.
_NEXT_DUE = """
SELECT o.id, o.user_id, o.scan_id, o.target_id, o.payload, o.status, o.attempt_count,
       u.scanning_enabled, u.invited_at,
       s.user_id AS scan_user_id, s.target_id AS scan_target_id, s.is_active, {filters},
       t.start_date, t.end_date, t.last_checked_at,
       c.id AS channel_id, c.kind, c.credentials, c.enabled, c.refusals,
       k.kind AS state_kind, k.faults, k.parked_until,
       EXISTS (SELECT 1 FROM notification_outbox l WHERE {newer}) AS has_newer,
       (SELECT {results} FROM scan_results r WHERE r.target_id = o.target_id) AS results
FROM notification_outbox o
LEFT JOIN users u ON u.id = o.user_id
LEFT JOIN user_scans s ON s.id = o.scan_id
LEFT JOIN unique_targets t ON t.id = o.target_id
LEFT JOIN notification_channels c ON c.user_id = o.user_id AND c.id = coalesce(
    s.channel_id,
    (SELECT e.id FROM notification_channels e WHERE e.user_id = o.user_id AND e.enabled
     ORDER BY e.created_at, e.id LIMIT 1))
LEFT JOIN channel_states k ON k.kind = c.kind
WHERE o.status IN {waiting} AND o.next_attempt_at <= :due_by
  AND (c.kind IS NULL OR c.kind NOT IN :full)
  AND (k.parked_until IS NULL OR k.parked_until <= :now)
ORDER BY o.next_attempt_at, o.id
LIMIT 1
{lock}
"""

_RESULTS = {
    "sqlite": "json_group_object(r.campsite_id, json_array(json(r.nights), json(r.unknown_since)))",
    "postgresql": "jsonb_object_agg(r.campsite_id, jsonb_build_array(r.nights, r.unknown_since))",
}
_LOCK = {"sqlite": "", "postgresql": "FOR UPDATE OF o SKIP LOCKED"}  # SQLite's transaction holds the one write lock


def next_due(connection: Connection, due_by: datetime, now: datetime, full: Collection[str]) -> RowMapping | None:
    """Lock the row that has been due longest, of those due at `due_by` whose kind of channel is not `full`."""
    found = connection.execute(_statement(connection.dialect.name), {"due_by": due_by, "now": now, "full": [*full]})
    return found.mappings().one_or_none()


def newer_than(connection: Connection, row_id: UUID) -> Sequence[RowMapping]:
    """Newer alerts of the same scan, with what is needed to say what they tell."""
    return connection.execute(_newer(), {"id": row_id}).mappings().all()


@lru_cache
def _newer() -> TextualSelect:
    names = ("status", "user_id", "target_id", "payload", "told")
    columns = ", ".join(f"l.{name}" for name in names)
    sql = f"SELECT {columns} FROM notification_outbox o JOIN notification_outbox l ON {NEWER} WHERE o.id = :id"  # noqa: S608
    return (
        text(sql)
        .bindparams(bindparam("id", type_=Uuid))
        .columns(**{name: notification_outbox.c[name].type for name in names})
    )


@lru_cache
def _statement(dialect: str) -> TextualSelect:
    """Built once: SQLAlchemy would take longer to put it together than the database to answer it.

    On one line, since pg8000 looks at each character of a statement whenever it is executed.
    """
    sql = _NEXT_DUE.format(
        filters=", ".join(f"s.{name}" for name in FILTER_COLUMNS),
        newer=NEWER,
        results=_RESULTS[dialect],
        waiting=WAITING_STATUSES,
        lock=_LOCK[dialect],
    )
    types: dict[str, Any] = {
        **{name: notification_outbox.c[name].type for name in OUTBOX},
        **{name: users.c[name].type for name in ("scanning_enabled", "invited_at")},
        **{f"scan_{name}": user_scans.c[name].type for name in ("user_id", "target_id")},
        **{name: user_scans.c[name].type for name in ("is_active", *FILTER_COLUMNS)},
        **{name: unique_targets.c[name].type for name in ("start_date", "end_date", "last_checked_at")},
        **{name: notification_channels.c[name].type for name in ("kind", "credentials", "enabled", "refusals")},
        **{name: channel_states.c[name].type for name in ("faults", "parked_until")},
        "channel_id": Uuid(),
        "state_kind": String(),
        "has_newer": Boolean(),
        "results": Json,
    }
    moments = [bindparam(name, type_=UtcDateTime) for name in ("due_by", "now")]
    return (
        text(" ".join(sql.split()))
        .bindparams(*moments, bindparam("full", type_=String, expanding=True))
        .columns(**types)
    )
