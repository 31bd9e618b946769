"""Scans as people see them: what they ask for, how they stand, and what is open for them right now."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Column, Connection, RowMapping, Select, and_, select

from chalicelib.db.audit import Asker, owner_of
from chalicelib.db.paging import Cursor, paged
from chalicelib.db.scan_rows import filter_columns, filters_of, result_of
from chalicelib.db.scan_versions import reachable
from chalicelib.db.tables import campgrounds, provider_states, scan_results, unique_targets, user_scans, users
from chalicelib.deps import Deps
from chalicelib.errors import NotFound
from chalicelib.history import iso
from chalicelib.settings import Settings
from chalicelib.stays.filters import Filters
from chalicelib.stays.nights import stay_words
from chalicelib.stays.openings import Result


@dataclass(frozen=True, slots=True)
class Standing:
    """How a scan stands. `word` is the first of these that holds: `paused`, `over` (its last night has passed),
    `suspended`, `not_invited`, `no_channel` (nobody could be told), `unavailable`, `not_checked` (yet), `watching`.

    `next_check_at` is when a check is due (None: none is), `unavailable_since` when checks began to fail.
    """

    word: str
    last_checked_at: datetime | None
    next_check_at: datetime | None
    unavailable_since: datetime | None
    error_category: str | None
    has_working_channel: bool


@dataclass(frozen=True, slots=True)
class ScanView:
    """One scan with what it watches, and how it stands."""

    id: UUID
    user_id: UUID
    target_id: UUID
    provider: str
    campground_id: str
    campground_name: str | None
    start_date: date
    end_date: date
    filters: Filters
    mode: str
    channel_id: UUID | None
    is_active: bool
    created_at: datetime
    standing: Standing

    def to_json(self) -> dict[str, Any]:
        standing = self.standing
        return {
            "id": str(self.id),
            "user_id": str(self.user_id),
            "target_id": str(self.target_id),
            "provider": self.provider,
            "campground_id": self.campground_id,
            "campground_name": self.campground_name,
            "start_date": self.start_date.isoformat(),
            "end_date": self.end_date.isoformat(),
            **filter_columns(self.filters),
            "mode": self.mode,
            "channel_id": str(self.channel_id) if self.channel_id else None,
            "is_active": self.is_active,
            "created_at": iso(self.created_at),
            "state": standing.word,
            "last_checked_at": _iso(standing.last_checked_at),
            "next_check_at": _iso(standing.next_check_at),
            "unavailable_since": _iso(standing.unavailable_since),
            "error_category": standing.error_category,
            "has_working_channel": standing.has_working_channel,
        }


@dataclass(frozen=True, slots=True)
class Open:
    """One campsite's open nights that suit a scan, each with the moment when it was found.

    `unconfirmed` are nights of which the last check learned nothing, `too_short` those in runs that are shorter than
    the site's own minimum stay; `link` leads to the campsite's page.
    """

    result: Result
    nights: tuple[date, ...]
    link: str | None

    @property
    def min_stay(self) -> int | None:
        return self.result.campsite.min_stay

    @property
    def too_short(self) -> tuple[date, ...]:
        return self.result.campsite.too_short(self.nights)

    def to_json(self) -> dict[str, Any]:
        campsite, known = self.result.campsite, self.result.known_nights()
        return {
            "campsite_id": campsite.id,
            "name": campsite.name,
            "nights": [night.isoformat() for night in self.nights],
            "loop": campsite.loop,
            "type": campsite.provider_type,
            "seen_at": {night.isoformat(): iso(self.result.nights[night]) for night in self.nights},
            "unconfirmed": [night.isoformat() for night in self.nights if night not in known],
            "min_stay": self.min_stay,
            "too_short": [night.isoformat() for night in self.too_short],
            "link": self.link,
        }

    def stays(self, filters: Filters) -> list[str]:
        """The nights as people say them: `Fri 3 Sep → Mon 6 Sep, 3 nights`."""
        return [stay_words(run) for run in filters.stays(self.nights)]


@dataclass(frozen=True, slots=True)
class ScanDetail:
    """A scan and what is open for it, as the last successful check found it."""

    scan: ScanView
    results: tuple[Open, ...]

    def to_json(self) -> dict[str, Any]:
        return {**self.scan.to_json(), "results": [found.to_json() for found in self.results]}


def page(
    deps: Deps,
    *,
    by: Asker,
    user_id: UUID | None = None,
    provider: str | None = None,
    campground_id: str | None = None,
    active: bool | None = None,
    after: Cursor | None = None,
    limit: int = 100,
    newest_first: bool = False,
) -> list[ScanView]:
    """The scans that an asker may see and all that is said holds for, oldest first unless said.

    `active` False are the paused ones. The next page begins after the last scan's `Cursor`.
    """
    scan, target = user_scans.c, unique_targets.c
    wanted: list[tuple[Column[Any], Any]] = [
        (scan.user_id, user_id),
        (target.provider, provider),
        (target.campground_id, campground_id),
        (scan.is_active, active),
    ]
    query = _scans(by).where(*(column == value for column, value in wanted if value is not None))
    query = paged(query, scan.created_at, scan.id, after=after, limit=limit, newest_first=newest_first)
    now = deps.clock()
    with deps.database.reading() as connection:
        return [_view(row, deps.settings, now) for row in connection.execute(query).mappings()]


def show(deps: Deps, scan_id: UUID, *, by: Asker) -> ScanDetail:
    """One scan with what is open for it. Raises NotFound, for another person's scan too."""
    now = deps.clock()
    with deps.database.reading() as connection:
        row = connection.execute(_scans(by).where(user_scans.c.id == scan_id)).mappings().first()
        if row is None:
            raise NotFound("scan", scan_id)
        scan = _view(row, deps.settings, now)
        stored = _stored(connection, scan.target_id)
    return ScanDetail(scan, tuple(_suiting(deps, scan, stored, now.astimezone(UTC).date())))


def _suiting(deps: Deps, scan: ScanView, stored: Iterable[Result], today: date) -> Iterable[Open]:
    """What suits a scan, by campsite name: nights from today on, inside the range, of stays that its filters want."""
    first = max(scan.start_date, today)
    for result in sorted(stored, key=lambda result: (result.campsite.name, result.campsite.id)):
        nights = [night for night in result.nights if first <= night < scan.end_date]
        suiting = scan.filters.matching_nights(result.campsite, nights, nights)
        if suiting:
            yield Open(result, tuple(sorted(suiting)), _link(deps, scan, result.campsite.id))


def _link(deps: Deps, scan: ScanView, campsite_id: str) -> str | None:
    if scan.provider not in deps.providers:
        return None
    template = deps.providers[scan.provider].info.campsite_link
    return template.format(campground_id=scan.campground_id, campsite_id=campsite_id)


def _stored(connection: Connection, target_id: UUID) -> list[Result]:
    rows = connection.execute(select(scan_results).where(scan_results.c.target_id == target_id))
    return [result_of(row) for row in rows.mappings()]


def _scans(by: Asker) -> Select[Any]:
    """Scans that an asker may see, with what their standing depends on."""
    target, campground, provider = unique_targets.c, campgrounds.c, provider_states.c
    query = (
        select(
            user_scans,
            target.provider,
            target.campground_id,
            target.start_date,
            target.end_date,
            target.last_checked_at,
            target.failing_since,
            target.error_category,
            target.retry_at,
            campground.name.label("campground_name"),
            users.c.scanning_enabled,
            users.c.invited_at,
            provider.unavailable_since,
            provider.open_until,
            provider.error_category.label("provider_error_category"),
            reachable().label("has_working_channel"),
        )
        .join_from(user_scans, unique_targets, user_scans.c.target_id == target.id)
        .join(users, user_scans.c.user_id == users.c.id)
        .outerjoin(
            campgrounds, and_(campground.provider == target.provider, campground.campground_id == target.campground_id)
        )
        .outerjoin(provider_states, provider.provider == target.provider)
    )
    owner = owner_of(by)
    return query if owner is None else query.where(user_scans.c.user_id == owner)


def _view(row: RowMapping, settings: Settings, now: datetime) -> ScanView:
    return ScanView(
        id=row["id"],
        user_id=row["user_id"],
        target_id=row["target_id"],
        provider=row["provider"],
        campground_id=row["campground_id"],
        campground_name=row["campground_name"],
        start_date=row["start_date"],
        end_date=row["end_date"],
        filters=filters_of(row),
        mode=row["mode"],
        channel_id=row["channel_id"],
        is_active=row["is_active"],
        created_at=row["created_at"],
        standing=_standing(row, settings, now),
    )


def _standing(row: RowMapping, settings: Settings, now: datetime) -> Standing:
    provider_down = row["unavailable_since"] is not None
    unavailable_since = row["unavailable_since"] or row["failing_since"]
    unchecked: dict[str, bool] = {
        "paused": not row["is_active"],
        "over": row["end_date"] <= now.astimezone(UTC).date(),
        "suspended": not row["scanning_enabled"],
        "not_invited": settings.invite_only and row["invited_at"] is None,
    }
    troubled: dict[str, bool] = {
        "no_channel": not row["has_working_channel"],
        "unavailable": unavailable_since is not None,
        "not_checked": row["last_checked_at"] is None,
    }
    return Standing(
        word=next((word for word, holds in {**unchecked, **troubled}.items() if holds), "watching"),
        last_checked_at=row["last_checked_at"],
        next_check_at=None if any(unchecked.values()) else _next_check(row, settings),
        unavailable_since=unavailable_since,
        error_category=row["provider_error_category"] if provider_down else row["error_category"],
        has_working_channel=row["has_working_channel"],
    )


def _next_check(row: RowMapping, settings: Settings) -> datetime:
    """When all that a check waits for has passed: cooldown, the target's own backoff, the provider's breaker."""
    checked: datetime | None = row["last_checked_at"]
    cooled = checked + timedelta(seconds=settings.check_interval) if checked else row["created_at"]
    return max(moment for moment in (cooled, row["retry_at"], row["open_until"]) if moment is not None)


def _iso(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None
