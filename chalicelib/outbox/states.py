"""States of an outbox row, and the moves that are allowed. Every move is one UPDATE, guarded by this table."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Update, bindparam, text, update

from chalicelib.db.tables import notification_outbox

MAX_ATTEMPTS = 4


class Status(StrEnum):
    """Where a row stands."""

    PENDING = "pending"  # waits for its first attempt; made by detect, never pruned
    SENDING = "sending"  # an attempt is under way until its lease ends; made by a claim
    RETRY = "retry"  # waits for another attempt; made by an acknowledgement or by recovery, never pruned
    SENT = "sent"  # the upstream accepted it; made by an acknowledgement; pruned after 24 hours
    SKIPPED = "skipped"  # no longer true or nobody to tell; made by a claim; pruned after 24 hours
    FAILED = "failed"  # refused, or four attempts used up; made by an acknowledgement or by recovery; pruned likewise


TERMINAL = frozenset({Status.SENT, Status.SKIPPED, Status.FAILED})

MOVES = {
    Status.PENDING: frozenset({Status.SENDING, Status.SKIPPED}),
    Status.RETRY: frozenset({Status.SENDING, Status.SKIPPED}),
    Status.SENDING: frozenset({Status.SENT, Status.RETRY, Status.FAILED, Status.SKIPPED}),
    Status.SENT: frozenset[Status](),
    Status.SKIPPED: frozenset[Status](),
    Status.FAILED: frozenset[Status](),
}
"""Allowed moves. One more, with its token alone: retry → sent, by the last attempt's late acceptance."""

LATE_ACCEPTANCE = (Status.RETRY, Status.SENT)

WAITING_STATUSES = "('pending', 'retry')"
WAITING = text(f"notification_outbox.status IN {WAITING_STATUSES}")
"""Rows that wait to be claimed, in the very words of the partial index, or SQLite would not use it."""


class SkipReason(StrEnum):
    """Why nothing was sent."""

    USER_MISSING = "user_missing"
    SCAN_MISSING = "scan_missing"
    TARGET_MISSING = "target_missing"
    NOT_OWNER = "not_owner"
    SCANNING_DISABLED = "scanning_disabled"
    NOT_INVITED = "not_invited"
    SCAN_INACTIVE = "scan_inactive"
    TARGET_CHANGED = "target_changed"
    DATES_PASSED = "dates_passed"
    FILTERS_UNMATCHED = "filters_unmatched"
    NO_LONGER_AVAILABLE = "no_longer_available"
    STALE = "stale"
    SUPERSEDED = "superseded"
    CHANNEL_MISSING = "channel_missing"
    CHANNEL_DISABLED = "channel_disabled"
    CREDENTIALS_MISSING = "credentials_missing"
    APP_CREDENTIALS_MISSING = "app_credentials_missing"


INTERRUPTED = "interrupted"
ATTEMPTS_EXHAUSTED = "attempts_exhausted"
INTERNAL_ERROR = "internal_error"


class MoveRefused(Exception):
    """The code asked for a move that is not in the table."""


def move(sources: Collection[Status], to: Status, *, token: UUID | None = None, **values: Any) -> Update:
    """An UPDATE that moves rows from `sources` to `to`; add the row and, where one was claimed, give its `token`.

    Raises MoveRefused for a move that nobody may make, or nobody without a token.
    """
    for source in sources:
        if to not in MOVES[source] and ((source, to) != LATE_ACCEPTANCE or token is None):
            raise MoveRefused(f"{source} → {to}")
    o = notification_outbox.c
    statement = update(notification_outbox).where(o.status.in_([source.value for source in sources]))
    if token is not None:
        statement = statement.where(o.claim_token == token)
    return statement.values(status=to.value, **values)


@lru_cache
def moving(sources: frozenset[Status], to: Status, columns: frozenset[str], *, fenced: bool = False) -> Update:
    """`move` of one row that also sets `columns`, put together once: that takes longer than the database's answer.

    Execute it with `moved(…)`; `fenced` where a token is given there.
    """
    o = notification_outbox.c
    token: Any = bindparam("row_token", type_=o.claim_token.type) if fenced else None
    values = {name: bindparam(f"new_{name}", type_=o[name].type) for name in columns}
    return move(sources, to, token=token, **values).where(o.id == bindparam("row_id", type_=o.id.type))


def moved(row_id: UUID, values: Mapping[str, Any], token: UUID | None = None) -> dict[str, Any]:
    """Parameters for a statement of `moving`."""
    return {"row_id": row_id, "row_token": token, **{f"new_{name}": value for name, value in values.items()}}
