"""Claim: take one due row, see whether it is still true, and commit the attempt before anything is sent."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Connection, RowMapping, ScalarSelect, and_, exists, func, or_, select
from sqlalchemy.exc import SQLAlchemyError

from chalicelib.db.scan_rows import FILTER_COLUMNS, filters_of, result_of
from chalicelib.db.tables import (
    channel_states,
    notification_channels,
    notification_outbox,
    scan_results,
    unique_targets,
    user_scans,
    users,
)
from chalicelib.db.vault import Unreadable
from chalicelib.deps import Deps
from chalicelib.outbox.finish import finish
from chalicelib.outbox.payload import MalformedPayload, NotificationDTO
from chalicelib.outbox.revalidate import Skip, Truth, check_references, without
from chalicelib.outbox.states import WAITING, SkipReason, Status, move
from chalicelib.outbox.wording import reworded

log = logging.getLogger(__name__)

LEASE_MARGIN = timedelta(seconds=10)
"""What an attempt's lease outlasts its deadline by: time to record the outcome in."""

STORAGE_FAULTS = (SQLAlchemyError, OSError)
"""What the database raises: pg8000 tells of a silent server by a bare TimeoutError, which is an OSError."""

TOLD_OR_TO_BE = [Status.PENDING.value, Status.RETRY.value, Status.SENDING.value, Status.SENT.value]
FEW = 50
"""Campsites of an alert up to which their results are read by name; beyond, the target's are read whole."""


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
        row = connection.execute(_next_due(due_by, deps.clock(), full)).mappings().one_or_none()
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


def _next_due(due_by: datetime, now: datetime, full: Collection[str]) -> Any:
    """One due row, oldest first, joined with all that its revalidation needs. Rows of parked kinds are passed over."""
    o, u, s, t = notification_outbox.c, users.c, user_scans.c, unique_targets.c
    channel, kind = notification_channels.c, channel_states.c
    candidate = notification_channels.alias("candidate")
    own = candidate.c.user_id == o.user_id
    oldest_enabled = (
        select(candidate.c.id)
        .where(own, candidate.c.enabled)
        .order_by(candidate.c.created_at, candidate.c.id)
        .limit(1)
        .correlate(notification_outbox)
        .scalar_subquery()
    )
    later = notification_outbox.alias("later")
    newer = exists(1).where(later.c.scan_id == o.scan_id, _is_later(later)).correlate(notification_outbox)
    return (
        select(
            *(o.id, o.user_id, o.scan_id, o.target_id, o.payload, o.status, o.attempt_count, o.created_at),
            *(u.scanning_enabled, u.invited_at),
            *(s.user_id.label("scan_user_id"), s.target_id.label("scan_target_id"), s.is_active),
            *(user_scans.c[name] for name in FILTER_COLUMNS),
            *(t.start_date, t.end_date, t.last_checked_at),
            *(channel.id.label("channel_id"), channel.kind, channel.credentials, channel.enabled, channel.refusals),
            *(kind.faults, kind.parked_until, kind.kind.label("state_kind")),
            exists(1).where(own).correlate(notification_outbox).label("has_channel"),
            newer.label("has_newer"),
        )
        .select_from(notification_outbox)
        .outerjoin(users, u.id == o.user_id)
        .outerjoin(user_scans, s.id == o.scan_id)
        .outerjoin(unique_targets, t.id == o.target_id)
        .outerjoin(
            notification_channels,
            and_(channel.id == func.coalesce(s.channel_id, oldest_enabled), channel.user_id == o.user_id),
        )
        .outerjoin(channel_states, kind.kind == channel.kind)
        .where(
            WAITING,
            o.next_attempt_at <= due_by,
            or_(channel.kind.is_(None), channel.kind.not_in(full)),
            or_(kind.parked_until.is_(None), kind.parked_until <= now),
        )
        .order_by(o.next_attempt_at, o.id)
        .limit(1)
        .with_for_update(of=notification_outbox, skip_locked=True)
    )


def _is_later(later: Any) -> ColumnElement[bool]:
    """A newer alert of the same scan that was told, is being told, or may be."""
    o = notification_outbox.c
    return and_(
        later.c.status.in_(TOLD_OR_TO_BE),
        or_(later.c.created_at > o.created_at, and_(later.c.created_at == o.created_at, later.c.id > o.id)),
    )


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
    truth = _truth(deps, connection, row, [opening.campsite.id for opening in alert.openings])
    nights = truth.nights_to_tell(alert)
    if row["has_newer"]:
        nights = _less_newer(connection, row, truth, nights)
    claim = Claim(
        id=row["id"],
        token=uuid4(),
        attempt=row["attempt_count"] + 1,
        kind=row["kind"],
        recipient=_recipient(deps, row),
        alert=reworded(alert.retaining(nights)),
        target_id=row["target_id"],
        channel_id=row["channel_id"],
        watched=bool(row["faults"] or row["parked_until"] or row["refusals"]),
    )
    told = {site_id: sorted(night.isoformat() for night in own) for site_id, own in sorted(nights.items())}
    return _begin(deps, connection, row, claim, told=told)


def _begin(deps: Deps, connection: Connection, row: RowMapping, claim: Claim, told: Any) -> Claim:
    """Count the attempt, within what the kind of channel allows over all processes."""
    o = notification_outbox.c
    statement = move([Status(row["status"])], Status.SENDING).where(o.id == claim.id)
    if claim.kind is not None:
        limit = 1 if row["parked_until"] is not None else deps.channels[claim.kind].info.concurrency
        if limit is not None:
            _lock_kind(deps, connection, row, claim.kind)
            statement = statement.where(_live_sends(claim.kind, deps.clock()) < limit)
    statement = statement.values(
        claim_token=claim.token,
        attempt_count=claim.attempt,
        next_attempt_at=_lease_end(deps),
        channel_id=claim.channel_id,
        channel_kind=claim.kind,
        told=told,
    )
    if not connection.execute(statement).rowcount:
        raise KindFull(str(claim.kind))
    return claim


def _lock_kind(deps: Deps, connection: Connection, row: RowMapping, kind: str) -> None:
    """Make claims of one kind take turns, so that counting its live sends and adding one is one step."""
    if row["state_kind"] is None:
        connection.execute(deps.database.upsert(channel_states).values(kind=kind).on_conflict_do_nothing())
    state = select(channel_states.c.parked_until).where(channel_states.c.kind == kind).with_for_update()
    parked_until = connection.execute(state).scalar_one()
    if parked_until != row["parked_until"]:  # parked, or opened again, since the row was read
        raise KindFull(kind)


def _live_sends(kind: str, now: datetime) -> ScalarSelect[int]:
    live = notification_outbox.alias("live")
    return (
        select(func.count())
        .select_from(live)
        .where(live.c.status == Status.SENDING.value, live.c.next_attempt_at > now, live.c.channel_kind == kind)
        .scalar_subquery()
    )


def _lease_end(deps: Deps) -> datetime:
    return deps.clock() + timedelta(seconds=deps.settings.attempt_deadline) + LEASE_MARGIN


def _truth(deps: Deps, connection: Connection, row: RowMapping, site_ids: list[str]) -> Truth:
    statement = select(scan_results).where(scan_results.c.target_id == row["target_id"])
    if len(site_ids) <= FEW:
        statement = statement.where(scan_results.c.campsite_id.in_(site_ids))
    stored = connection.execute(statement).mappings()
    return Truth(
        start_date=row["start_date"],
        end_date=row["end_date"],
        last_checked_at=row["last_checked_at"],
        results={result["campsite_id"]: result_of(result) for result in stored},
        filters=filters_of(row),
        now=deps.clock(),
        max_age=timedelta(seconds=deps.settings.results_max_age),
    )


def _less_newer(
    connection: Connection, row: RowMapping, truth: Truth, nights: dict[str, frozenset[date]]
) -> dict[str, frozenset[date]]:
    """The nights that no newer alert of the scan has told, is telling or would tell. Raises Skip when none is left."""
    later = notification_outbox.alias("later")
    o = notification_outbox.c
    rows = connection.execute(
        select(later.c.status, later.c.user_id, later.c.target_id, later.c.payload, later.c.told)
        .select_from(notification_outbox.join(later, and_(later.c.scan_id == o.scan_id, _is_later(later))))
        .where(o.id == row["id"])
    ).mappings()
    for newer in rows:
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


def _recipient(deps: Deps, row: RowMapping) -> str:
    """The channel's recipient, in the clear for this one attempt. Raises Skip."""
    if row["channel_id"] is None:
        raise Skip(SkipReason.CHANNEL_DISABLED if row["has_channel"] else SkipReason.CHANNEL_MISSING)
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
