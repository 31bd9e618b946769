"""Due: which targets are to be checked now, most urgent first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, func, or_, select

from chalicelib.db.engine import Database
from chalicelib.db.tables import campgrounds, unique_targets, user_scans, users
from chalicelib.deps import Deps

SCHEDULE_JITTER = timedelta(seconds=5)
"""What is checked every minute, by a schedule of a minute, must not miss a turn for having been a second late."""


@dataclass(frozen=True, slots=True)
class Target:
    """A due target, as it was listed."""

    id: UUID
    provider: str
    campground_id: str
    campground_name: str | None
    start_date: date
    end_date: date
    last_checked_at: datetime | None
    last_attempt_at: datetime | None
    failures: int
    campsites_fetched_at: datetime | None
    campsites_tried_at: datetime | None


def due_targets(deps: Deps, now: datetime) -> list[Target]:
    """Targets to check now: by last attempt, never tried first, then by nearest first night."""
    interval = timedelta(seconds=deps.settings.check_interval)
    cooled = now - interval + min(SCHEDULE_JITTER, interval / 2)
    t = unique_targets.c
    statement = (
        select(
            t.id,
            t.provider,
            t.campground_id,
            campgrounds.c.name.label("campground_name"),
            t.start_date,
            t.end_date,
            t.last_checked_at,
            t.last_attempt_at,
            t.failures,
            campgrounds.c.campsites_fetched_at,
            campgrounds.c.campsites_tried_at,
        )
        .join_from(
            unique_targets,
            campgrounds,
            and_(campgrounds.c.provider == t.provider, campgrounds.c.campground_id == t.campground_id),
        )
        .where(
            t.end_date > now.date(),
            or_(t.last_checked_at.is_(None), t.last_checked_at <= cooled),
            or_(t.retry_at.is_(None), t.retry_at <= now),
            or_(t.lease_until.is_(None), t.lease_until <= now),
            exists().where(
                user_scans.c.target_id == t.id,
                user_scans.c.user_id == users.c.id,
                *eligible(invite_only=deps.settings.invite_only),
            ),
        )
        .order_by(t.last_attempt_at.asc().nulls_first(), t.start_date, t.id)
    )
    with deps.database.reading() as connection:
        return [Target(**row) for row in connection.execute(statement).mappings()]


def last_discovery(database: Database) -> datetime | None:
    """When the last successful check began, over all processes; None before the first."""
    last = func.max(unique_targets.c.last_checked_at, type_=unique_targets.c.last_checked_at.type)
    with database.reading() as connection:
        return connection.execute(select(last)).scalar_one()


def eligible(*, invite_only: bool) -> Sequence[ColumnElement[bool]]:
    """Conditions on user_scans joined with users: the scan is active and its owner may scan."""
    conditions: list[ColumnElement[bool]] = [user_scans.c.is_active, users.c.scanning_enabled]
    if invite_only:
        conditions.append(users.c.invited_at.is_not(None))
    return conditions
