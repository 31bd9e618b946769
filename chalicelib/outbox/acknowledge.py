"""Acknowledge: the outcome of an attempt is written by whoever holds its token, and by nobody else."""

import logging
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import DBAPIError

from chalicelib.channels.outcomes import DeliveryErrorCategory, Outcome, OutcomeClass
from chalicelib.db.engine import is_busy
from chalicelib.db.tables import channel_states, notification_channels, notification_outbox
from chalicelib.deps import Deps
from chalicelib.outbox.claim import Claim
from chalicelib.outbox.finish import finish
from chalicelib.outbox.states import ATTEMPTS_EXHAUSTED, INTERNAL_ERROR, MAX_ATTEMPTS, Status, move

log = logging.getLogger(__name__)

T = TypeVar("T")

FAULTS_THAT_PARK = 5
REFUSALS_THAT_DISABLE = 3
SHORTEST_PARK = timedelta(seconds=60)
LONGEST_PARK = timedelta(minutes=30)
WRITE_TRIES = 5
FIRST_PAUSE = 0.1  # seconds, doubling, with jitter


def acknowledge(deps: Deps, claim: Claim, outcome: Outcome | None) -> Status | None:
    """Record what came of an attempt; None when another attempt or recovery has moved the row since.

    An outcome of None is a fault of our own. Accepted: `sent`, even if the row waits for a retry by now. Permanent:
    `failed`. Transient, and for alerts ambiguous too (a double beats a miss): `retry` after the delay or when the
    upstream said, whichever is later, and `failed` after the fourth attempt.

    Raises what the database raises.
    """
    with deps.database.transaction() as connection:
        now = deps.clock()
        status = _move(deps, connection, claim, outcome, now)
        if status is not None and outcome is not None:
            _note_channel(connection, claim, outcome)
            _note_kind(deps, connection, claim, outcome, now)
    if status is None:
        log.warning("a stale acknowledgement was dropped", extra={"outbox_id": str(claim.id), "attempt": claim.attempt})
    return status


def patiently(deps: Deps, write: Callable[[], T]) -> T:
    """Run a write again while the database is busy, a few times and with jitter; never the request that it records.

    Raises what the database raises, when it is another fault or stays busy.
    """
    pause = FIRST_PAUSE
    for _ in range(WRITE_TRIES - 1):
        try:
            return write()
        except DBAPIError as error:
            if not is_busy(error):
                raise
        deps.pause(pause * random.uniform(1, 1.5))
        pause *= 2
    return write()


def _move(deps: Deps, connection: Connection, claim: Claim, outcome: Outcome | None, now: datetime) -> Status | None:
    if outcome is not None and outcome.kind is OutcomeClass.ACCEPTED:
        return _finish(
            connection, claim, [Status.SENDING, Status.RETRY], Status.SENT, now, provider_message_id=outcome.message_id
        )
    category = (outcome.category if outcome else None) or INTERNAL_ERROR
    if outcome is not None and outcome.kind is OutcomeClass.PERMANENT:
        return _finish(connection, claim, [Status.SENDING], Status.FAILED, now, category=category)
    if claim.attempt >= MAX_ATTEMPTS:
        category = ATTEMPTS_EXHAUSTED if outcome else INTERNAL_ERROR
        return _finish(connection, claim, [Status.SENDING], Status.FAILED, now, category=category)
    due = now + timedelta(seconds=deps.settings.retry_delay)
    if outcome is not None and outcome.retry_at is not None:
        due = max(due, outcome.retry_at)
    o = notification_outbox.c
    statement = move([Status.SENDING], Status.RETRY, token=claim.token, next_attempt_at=due, error_category=category)
    moved = connection.execute(statement.where(o.id == claim.id)).rowcount
    return Status.RETRY if moved else None


def _finish(
    connection: Connection, claim: Claim, sources: list[Status], to: Status, now: datetime, **values: Any
) -> Status | None:
    return to if finish(connection, claim.id, sources, to, now, token=claim.token, **values) else None


def _note_channel(connection: Connection, claim: Claim, outcome: Outcome) -> None:
    """A recipient that is refused again and again is taken out of use, with the reason."""
    c = notification_channels.c
    if outcome.category is DeliveryErrorCategory.INVALID_RECIPIENT:
        refusals = connection.execute(
            update(notification_channels)
            .where(c.id == claim.channel_id)
            .values(refusals=c.refusals + 1)
            .returning(c.refusals)
        ).scalar_one_or_none()
        if refusals is not None and refusals >= REFUSALS_THAT_DISABLE:
            connection.execute(
                update(notification_channels)
                .where(c.id == claim.channel_id)
                .values(enabled=False, disabled_reason=outcome.category.value)
            )
            log.warning("a channel was disabled: its recipient is refused", extra={"channel_id": str(claim.channel_id)})
    elif outcome.kind is OutcomeClass.ACCEPTED and claim.watched:
        connection.execute(update(notification_channels).where(c.id == claim.channel_id).values(refusals=0))


def _note_kind(deps: Deps, connection: Connection, claim: Claim, outcome: Outcome, now: datetime) -> None:
    """The breaker of a kind of channel: a refused application token, a spent quota or five faults in a row park it."""
    k = channel_states.c
    if claim.kind is None or outcome.category is DeliveryErrorCategory.MALFORMED_PAYLOAD:
        return
    if outcome.kind is OutcomeClass.ACCEPTED:
        if claim.watched:
            cleared = update(channel_states).where(k.kind == claim.kind, (k.faults > 0) | k.parked_until.is_not(None))
            values = {"faults": 0, "backoff_seconds": 0, "parked_until": None, "error_category": None}
            connection.execute(cleared.values(**values))
        return
    # A kind without a limit has no row until something goes wrong, which may go wrong twice at once.
    connection.execute(deps.database.upsert(channel_states).values(kind=claim.kind).on_conflict_do_nothing())
    state = connection.execute(select(channel_states).where(k.kind == claim.kind).with_for_update()).one()
    values = {"faults": state.faults + 1}
    if outcome.parks or state.parked_until is not None or state.faults + 1 >= FAULTS_THAT_PARK:
        values |= _parked(state, outcome, now)
        if state.parked_until is None:
            log.error("a kind of channel was parked", extra={"kind": claim.kind, "error_category": outcome.category})
    connection.execute(update(channel_states).where(k.kind == claim.kind).values(**values))


def _parked(state: Any, outcome: Outcome, now: datetime) -> dict[str, Any]:
    still_parked = state.parked_until is not None and state.parked_until > now
    backoff = timedelta(seconds=state.backoff_seconds)
    if not still_parked:
        backoff = min(LONGEST_PARK, max(SHORTEST_PARK, backoff * 2))
    until = max(moment for moment in (now + backoff, outcome.retry_at, state.parked_until) if moment is not None)
    return {"backoff_seconds": int(backoff.total_seconds()), "parked_until": until, "error_category": outcome.category}
