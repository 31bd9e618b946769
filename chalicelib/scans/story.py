"""A scan's story: what was told of it, what will be, and what was not and why."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, or_, select

from chalicelib.channels.outcomes import DeliveryErrorCategory
from chalicelib.db.audit import Asker, owner_of
from chalicelib.db.tables import alert_history, campsites, notification_outbox, scan_results, unique_targets, user_scans
from chalicelib.deps import Deps
from chalicelib.errors import NotFound
from chalicelib.history import iso
from chalicelib.outbox.payload import MalformedPayload, NotificationDTO, Opening
from chalicelib.outbox.states import ATTEMPTS_EXHAUSTED, INTERNAL_ERROR, INTERRUPTED, TERMINAL, SkipReason, Status

Cursor = tuple[datetime, UUID]
"""Where a page ended: the last one's `at` and id."""

REASONS: Mapping[str, str] = {
    SkipReason.USER_MISSING: "The account that it was for is gone.",
    SkipReason.SCAN_MISSING: "The alert that it was for has been removed.",
    SkipReason.TARGET_MISSING: "What it was about is no longer watched.",
    SkipReason.NOT_OWNER: "The alert that it was for belongs to somebody else now.",
    SkipReason.SCANNING_DISABLED: "This account may not watch campgrounds at the moment.",
    SkipReason.NOT_INVITED: "Only people who are invited are told, and this account was not.",
    SkipReason.SCAN_INACTIVE: "The alert was paused.",
    SkipReason.TARGET_CHANGED: "The alert has moved to another campground or other dates.",
    SkipReason.DATES_PASSED: "The nights had passed.",
    SkipReason.FILTERS_UNMATCHED: "What was open no longer suited what the alert asks for.",
    SkipReason.NO_LONGER_AVAILABLE: "The nights were taken again before the message went out.",
    SkipReason.STALE: "Nobody could see any more whether the nights were still open: the last check was too long ago.",
    SkipReason.SUPERSEDED: "A newer message told the same.",
    SkipReason.CHANNEL_MISSING: "There was no channel to tell it by.",
    SkipReason.CHANNEL_DISABLED: "The channel was switched off.",
    SkipReason.CREDENTIALS_MISSING: "The channel had no recipient, or one that could not be read.",
    SkipReason.APP_CREDENTIALS_MISSING: "This instance is not set up for that kind of channel.",
    DeliveryErrorCategory.TIMEOUT: "The message service did not answer in time.",
    DeliveryErrorCategory.TRANSPORT_ERROR: "The message service could not be reached.",
    DeliveryErrorCategory.RATE_LIMITED: "The message service asked for fewer messages.",
    DeliveryErrorCategory.QUOTA_EXHAUSTED: "The message service takes no more messages from this instance for now.",
    DeliveryErrorCategory.SERVER_ERROR: "The message service was in trouble.",
    DeliveryErrorCategory.UNPROVEN_ACCEPTANCE: "The message service did not say whether it took the message.",
    DeliveryErrorCategory.REJECTED: "The message service refused the message.",
    DeliveryErrorCategory.INVALID_RECIPIENT: "The message service does not know the channel's recipient.",
    DeliveryErrorCategory.INVALID_CREDENTIALS: "The message service refused this instance.",
    DeliveryErrorCategory.MALFORMED_PAYLOAD: "The message could not be put together.",
    INTERRUPTED: "The attempt was interrupted; it may have arrived.",
    ATTEMPTS_EXHAUSTED: "No attempt succeeded, and there are no more.",
    INTERNAL_ERROR: "Sitebell made a mistake.",
}
"""Why something was not told, or not yet, in a sentence for campers; one for each category that a row can have."""


@dataclass(frozen=True, slots=True)
class Told:
    """One message of a scan. `outcome` is a status of the outbox, `at` when it ended, or else when it was written.

    `nights` by campsite id are what was told, would be or would have been. What only the outbox knows (`created_at`,
    `channel_kind`) is None a day after the end; names are kept as long as anything holds them.
    """

    id: UUID
    outcome: str
    error_category: str | None
    reason: str | None
    attempts: int
    nights: Mapping[str, tuple[date, ...]]
    campsite_names: Mapping[str, str]
    created_at: datetime | None
    finished_at: datetime | None
    next_attempt_at: datetime | None
    channel_kind: str | None
    at: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "outcome": self.outcome,
            "error_category": self.error_category,
            "reason": self.reason,
            "attempts": self.attempts,
            "nights": {site_id: [night.isoformat() for night in own] for site_id, own in self.nights.items()},
            "campsite_names": dict(self.campsite_names),
            "created_at": _iso(self.created_at),
            "finished_at": _iso(self.finished_at),
            "next_attempt_at": _iso(self.next_attempt_at),
            "channel_kind": self.channel_kind,
            "at": iso(self.at),
        }


def story(deps: Deps, scan_id: UUID, *, by: Asker, after: Cursor | None = None, limit: int = 50) -> list[Told]:
    """A scan's messages, newest first; the next page begins after the last one's `Cursor`.

    Raises NotFound, for another person's scan too.
    """
    with deps.database.reading() as connection:
        target_id = _target_of(connection, scan_id, by)
        # In this order: a row that ends between the two shows in both, and none in neither.
        waiting = _waiting(connection, scan_id, after, limit)
        ended = _ended(connection, scan_id, after, limit)
        rows = _merged(waiting, ended, limit)
        told = [_told(row, _openings(row["payload"])) for row in rows]
        unnamed = {site_id for one in told for site_id in one.nights if site_id not in one.campsite_names}
        known = _known_names(connection, target_id, unnamed)
    return [replace(one, campsite_names={**_only(one.nights, known), **one.campsite_names}) for one in told]


def _target_of(connection: Connection, scan_id: UUID, by: Asker) -> UUID:
    query = select(user_scans.c.target_id).where(user_scans.c.id == scan_id)
    owner = owner_of(by)
    if owner is not None:
        query = query.where(user_scans.c.user_id == owner)
    target_id = connection.execute(query).scalar_one_or_none()
    if target_id is None:
        raise NotFound("scan", scan_id)
    return target_id


def _waiting(connection: Connection, scan_id: UUID, after: Cursor | None, limit: int) -> Iterable[RowMapping]:
    o = notification_outbox.c
    query = (
        select(
            *(o.id, o.status.label("outcome"), o.error_category, o.attempt_count, o.told.label("nights"), o.payload),
            *(o.created_at, o.finished_at, o.next_attempt_at, o.channel_kind, o.created_at.label("at")),
        )
        .where(o.scan_id == scan_id, o.status.not_in(TERMINAL), *_before(o.created_at, o.id, after))
        .order_by(o.created_at.desc(), o.id.desc())
        .limit(limit)
    )
    return connection.execute(query).mappings().all()


def _ended(connection: Connection, scan_id: UUID, after: Cursor | None, limit: int) -> Iterable[RowMapping]:
    """What the history keeps, with what the outbox still has of it."""
    h, o = alert_history.c, notification_outbox.c
    query = (
        select(
            *(h.id, h.outcome, h.error_category, h.attempt_count, h.nights, o.payload),
            *(o.created_at, h.finished_at, o.next_attempt_at, o.channel_kind, h.finished_at.label("at")),
        )
        .outerjoin_from(alert_history, notification_outbox, o.id == h.id)
        .where(h.scan_id == scan_id, *_before(h.finished_at, h.id, after))
        .order_by(h.finished_at.desc(), h.id.desc())
        .limit(limit)
    )
    return connection.execute(query).mappings().all()


def _before(moment: ColumnElement[datetime], row_id: ColumnElement[UUID], after: Cursor | None) -> list[Any]:
    if after is None:
        return []
    at, last_id = after
    return [or_(moment < at, and_(moment == at, row_id < last_id))]


def _merged(waiting: Iterable[RowMapping], ended: Iterable[RowMapping], limit: int) -> list[RowMapping]:
    over = {row["id"] for row in ended}
    still = (row for row in waiting if row["id"] not in over)
    newest_first = heapq.merge(still, ended, key=lambda row: (row["at"], row["id"]), reverse=True)
    return list(islice(newest_first, limit))


def _openings(payload: Any) -> Sequence[Opening]:
    try:
        return NotificationDTO.from_json(payload).openings
    except MalformedPayload:  # as is None, once the outbox has forgotten it
        return ()


def _known_names(connection: Connection, target_id: UUID, site_ids: set[str]) -> dict[str, str]:
    """Names by what the last check found, else by what the catalogue has."""
    if not site_ids:
        return {}
    c, r, t = campsites.c, scan_results.c, unique_targets.c
    at_campground = and_(c.provider == t.provider, c.campground_id == t.campground_id)
    catalogue = (
        select(c.campsite_id, c.campsite)
        .join_from(unique_targets, campsites, at_campground)
        .where(t.id == target_id, c.campsite_id.in_(site_ids))
    )
    found = select(r.campsite_id, r.campsite).where(r.target_id == target_id, r.campsite_id.in_(site_ids))
    rows = [*connection.execute(catalogue), *connection.execute(found)]
    return {site_id: campsite["name"] for site_id, campsite in rows if campsite["name"]}


def _told(row: RowMapping, openings: Sequence[Opening]) -> Told:
    """One row; its nights are what history or the last claim says, before the first claim what the payload holds."""
    stored: Mapping[str, list[str]] | None = row["nights"]
    if stored is None:
        nights = {opening.campsite.id: opening.nights for opening in openings}
    else:
        nights = {site_id: tuple(sorted(map(date.fromisoformat, own))) for site_id, own in stored.items()}
    names = {opening.campsite.id: opening.campsite.name for opening in openings if opening.campsite.name}
    waits = row["outcome"] in {Status.PENDING, Status.RETRY}  # for others it is a lease's end, or history
    return Told(
        id=row["id"],
        outcome=row["outcome"],
        error_category=row["error_category"],
        reason=REASONS.get(row["error_category"] or ""),
        attempts=row["attempt_count"],
        nights=nights,
        campsite_names=_only(nights, names),
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        next_attempt_at=row["next_attempt_at"] if waits else None,
        channel_kind=row["channel_kind"],
        at=row["at"],
    )


def _only(nights: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    return {site_id: names[site_id] for site_id in nights if site_id in names}


def _iso(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None
