"""Claim: take one due row, see whether it is still true, and commit the attempt before anything is sent."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Integer, RowMapping, Update, bindparam, func, select

from chalicelib.db.engine import STORAGE_FAULTS
from chalicelib.db.scan_rows import filters_of, moments_of
from chalicelib.db.tables import channel_states, notification_channels, notification_outbox
from chalicelib.db.vault import Unreadable
from chalicelib.deps import Deps
from chalicelib.outbox.finish import finish
from chalicelib.outbox.next_due import newer_than, next_due
from chalicelib.outbox.payload import MalformedPayload, NotificationDTO
from chalicelib.outbox.revalidate import Held, Skip, Truth, check_references, without
from chalicelib.outbox.states import SkipReason, Status, move, moved, moving
from chalicelib.outbox.wording import reworded

log = logging.getLogger(__name__)

LEASE_MARGIN = timedelta(seconds=10)
"""What an attempt's lease outlasts its deadline by: time to record the outcome in."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One begun attempt: what to send, to whom, and what its acknowledgement must present.

    `recipient` is kept nowhere else. `watched` says that the channel or its kind was in trouble before, so that an
    acceptance has something to clear. `alert` is None for a payload that cannot be read.
    """

    id: UUID
    token: UUID
    attempt: int
    kind: str | None = None
    recipient: str = field(default="", repr=False)
    alert: NotificationDTO | None = None
    target_id: UUID | None = None
    channel_id: UUID | None = None
    watched: bool = False

    def in_trouble(self) -> "Claim":
        """The same claim, its kind of channel known to have been in trouble."""
        return replace(self, watched=True)


class KindFull(Exception):
    """All the sends that a kind of channel may have under way at once are under way."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class RowBroken(Exception):
    """A row made the code raise; it must not stop the run."""

    def __init__(self, row_id: UUID) -> None:
        super().__init__(str(row_id))
        self.row_id = row_id


def claim_next(deps: Deps, due_by: datetime, full: Collection[str]) -> Claim | SkipReason | None:
    """Claim the next due row whose kind of channel is not `full`; None when there is none.

    1. Lock one due row, and read with it all that it refers to.
    2. Revalidate; what is no longer true or wanted becomes `skipped`, and costs no attempt.
    3. Count the attempt and set the lease; with the commit the attempt has begun.

    Raises KindFull, RowBroken, and what the database raises.
    """
    with deps.database.transaction() as connection:
        row = next_due(connection, due_by, deps.clock(), full)
        if row is None:
            return None
        try:
            return _claimed_or_skipped(deps, connection, row)
        except (*STORAGE_FAULTS, KindFull):
            raise
        except Exception as error:  # whatever it is, it is this row's alone
            log.exception("an outbox row broke its claim", extra={"outbox_id": str(row["id"])})
            raise RowBroken(row["id"]) from error


def claim_broken(deps: Deps, row_id: UUID) -> Claim | None:
    """Charge a row that made the code raise with an attempt; its acknowledgement backs it off, or ends it."""
    token = uuid4()
    o = notification_outbox.c
    with deps.database.transaction() as connection:
        statement = (
            move([Status.PENDING, Status.RETRY], Status.SENDING)
            .where(o.id == row_id)
            .values(attempt_count=o.attempt_count + 1, claim_token=token, next_attempt_at=_lease_end(deps))
            .returning(o.attempt_count)
        )
        attempt = connection.execute(statement).scalar_one_or_none()
    return None if attempt is None else Claim(row_id, token, attempt)


def _claimed_or_skipped(deps: Deps, connection: Connection, row: RowMapping) -> Claim | SkipReason:
    try:
        return _claimed(deps, connection, row)
    except Skip as skip:
        told = _payload_nights(row["payload"])
        sources = [Status(row["status"])]
        finish(connection, row["id"], sources, Status.SKIPPED, deps.clock(), category=skip.reason, told=told)
        return skip.reason


def _claimed(deps: Deps, connection: Connection, row: RowMapping) -> Claim:
    """Revalidate a locked row and begin its attempt. Raises Skip and KindFull."""
    check_references(row, deps.settings)
    try:
        alert = NotificationDTO.from_json(row["payload"])
    except MalformedPayload:
        return _begin(deps, connection, row, Claim(row["id"], uuid4(), row["attempt_count"] + 1), told=None)
    truth = _truth(deps, row)
    nights = truth.nights_to_tell(alert)
    if row["has_newer"]:
        nights = _less_newer(connection, row, truth, nights)
    claim = Claim(
        id=row["id"],
        token=uuid4(),
        attempt=row["attempt_count"] + 1,
        kind=row["kind"],
        recipient=_recipient(deps, connection, row),
        alert=reworded(alert.retaining(nights)),
        target_id=row["target_id"],
        channel_id=row["channel_id"],
        watched=bool(row["faults"] or row["parked_until"] or row["refusals"]),
    )
    told = {site_id: sorted(night.isoformat() for night in own) for site_id, own in sorted(nights.items())}
    return _begin(deps, connection, row, claim, told=told)


def _begin(deps: Deps, connection: Connection, row: RowMapping, claim: Claim, told: Any) -> Claim:
    """Count the attempt, within what the kind of channel allows over all processes."""
    values = {
        "claim_token": claim.token,
        "attempt_count": claim.attempt,
        "next_attempt_at": _lease_end(deps),
        "channel_id": claim.channel_id,
        "channel_kind": claim.kind,
        "told": told,
    }
    parameters, statement = moved(claim.id, values), _beginning(frozenset(values), limited=False)
    limit = _limit(deps, row, claim.kind)
    if limit is not None:
        _lock_kind(deps, connection, row, str(claim.kind))
        statement = _beginning(frozenset(values), limited=True)
        parameters |= {"kind": claim.kind, "now": deps.clock(), "limit": limit}
    if not connection.execute(statement, parameters).rowcount:
        raise KindFull(str(claim.kind))
    return claim


def _limit(deps: Deps, row: RowMapping, kind: str | None) -> int | None:
    """How many sends of a kind may be under way; one, where it finds out whether a parked kind works again."""
    if kind is None:
        return None
    return 1 if row["parked_until"] is not None else deps.channels[kind].info.concurrency


@lru_cache
def _beginning(columns: frozenset[str], *, limited: bool) -> Update:
    statement = moving(frozenset({Status.PENDING, Status.RETRY}), Status.SENDING, columns)
    if not limited:
        return statement
    live = notification_outbox.alias("live").c
    of_kind = live.channel_kind == bindparam("kind", type_=live.channel_kind.type)
    under_way = (live.status == Status.SENDING.value) & (
        live.next_attempt_at > bindparam("now", type_=live.next_attempt_at.type)
    )
    count = select(func.count(live.id)).where(of_kind, under_way).scalar_subquery()
    return statement.where(count < bindparam("limit", type_=Integer))


def _lock_kind(deps: Deps, connection: Connection, row: RowMapping, kind: str) -> None:
    """Make claims of one kind take turns, so that counting its live sends and adding one is one step."""
    if row["state_kind"] is None:
        connection.execute(deps.database.upsert(channel_states).values(kind=kind).on_conflict_do_nothing())
    state = select(channel_states.c.parked_until).where(channel_states.c.kind == kind).with_for_update()
    parked_until = connection.execute(state).scalar_one()
    if parked_until != row["parked_until"]:  # parked, or opened again, since the row was read
        raise KindFull(kind)


def _lease_end(deps: Deps) -> datetime:
    return deps.clock() + timedelta(seconds=deps.settings.attempt_deadline) + LEASE_MARGIN


def _truth(deps: Deps, row: RowMapping) -> Truth:
    stored: dict[str, tuple[dict[str, str], dict[str, str]]] = row["results"] or {}
    return Truth(
        start_date=row["start_date"],
        end_date=row["end_date"],
        last_checked_at=row["last_checked_at"],
        results={site_id: Held(*map(moments_of, both)) for site_id, both in stored.items()},
        filters=filters_of(row),
        now=deps.clock(),
        max_age=timedelta(seconds=deps.settings.results_max_age),
    )


def _less_newer(
    connection: Connection, row: RowMapping, truth: Truth, nights: dict[str, frozenset[date]]
) -> dict[str, frozenset[date]]:
    """The nights that no newer alert of the scan has told, is telling or would tell. Raises Skip when none is left."""
    for newer in newer_than(connection, row["id"]):
        nights = without(nights, _told_by(newer, row, truth))
    if not nights:
        raise Skip(SkipReason.SUPERSEDED)
    return nights


def _told_by(newer: RowMapping, row: RowMapping, truth: Truth) -> Mapping[str, frozenset[date]]:
    if newer["status"] in {Status.SENT, Status.SENDING}:
        told: dict[str, list[str]] = newer["told"] or {}
        return {site_id: frozenset(map(date.fromisoformat, own)) for site_id, own in told.items()}
    if (newer["user_id"], newer["target_id"]) != (row["user_id"], row["target_id"]):
        return {}
    try:
        return truth.nights_to_tell(NotificationDTO.from_json(newer["payload"]))
    except (Skip, MalformedPayload):
        return {}


def _recipient(deps: Deps, connection: Connection, row: RowMapping) -> str:
    """The channel's recipient, in the clear for this one attempt. Raises Skip."""
    if row["channel_id"] is None:
        own = notification_channels.c.user_id == row["user_id"]
        any_channel = connection.execute(select(notification_channels.c.id).where(own).limit(1)).first()
        raise Skip(SkipReason.CHANNEL_DISABLED if any_channel else SkipReason.CHANNEL_MISSING)
    if not row["enabled"]:
        raise Skip(SkipReason.CHANNEL_DISABLED)
    if row["kind"] not in deps.channels:
        raise Skip(SkipReason.CHANNEL_MISSING)
    if not deps.channels[row["kind"]].configured:
        raise Skip(SkipReason.APP_CREDENTIALS_MISSING)
    if row["credentials"] is None:
        raise Skip(SkipReason.CREDENTIALS_MISSING)
    try:
        return deps.vault.decrypt(row["credentials"])
    except Unreadable:
        raise Skip(SkipReason.CREDENTIALS_MISSING) from None


def _payload_nights(payload: Any) -> dict[str, list[str]]:
    """The nights of a payload as they stand there, for the history of what was not told."""
    try:
        nights = NotificationDTO.from_json(payload).nights()
    except MalformedPayload:
        return {}
    return {site_id: sorted(night.isoformat() for night in own) for site_id, own in sorted(nights.items())}
