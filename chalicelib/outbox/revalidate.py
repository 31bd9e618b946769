"""Revalidate: is this alert still true, and still wanted? Pure thought, on what the claim has read."""

from collections.abc import Mapping, Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from chalicelib.db.scan_rows import Columns
from chalicelib.outbox.payload import NotificationDTO, Opening
from chalicelib.outbox.states import SkipReason
from chalicelib.settings import Settings
from chalicelib.stays.filters import Filters
from chalicelib.stays.nights import first_of_month


class Skip(Exception):
    """Nothing is to be sent, and why."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def check_references(row: Columns, settings: Settings) -> None:
    """The people and things an intent refers to exist, belong together and may be used.

    Takes the claim's joined row. Raises Skip.
    """
    for column, reason in (
        ("user_id", SkipReason.USER_MISSING),
        ("scan_id", SkipReason.SCAN_MISSING),
        ("target_id", SkipReason.TARGET_MISSING),
    ):
        if row[column] is None:
            raise Skip(reason)
    if row["scan_user_id"] != row["user_id"]:
        raise Skip(SkipReason.NOT_OWNER)
    if not row["scanning_enabled"]:
        raise Skip(SkipReason.SCANNING_DISABLED)
    if settings.invite_only and row["invited_at"] is None:
        raise Skip(SkipReason.NOT_INVITED)
    if not row["is_active"]:
        raise Skip(SkipReason.SCAN_INACTIVE)
    if row["scan_target_id"] != row["target_id"]:
        raise Skip(SkipReason.TARGET_CHANGED)


@dataclass(frozen=True, slots=True)
class Held:
    """What the latest results hold of a campsite, as in `stays.openings.Result`."""

    nights: Mapping[date, datetime]
    unknown_since: Mapping[date, datetime]


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true now of a scan and its target: the target's dates, its latest results, the scan's filters."""

    start_date: date
    end_date: date
    last_checked_at: datetime | None
    results: Mapping[str, Held]
    filters: Filters
    now: datetime
    max_age: timedelta

    def nights_to_tell(self, dto: NotificationDTO) -> dict[str, frozenset[date]]:
        """The nights of an alert that are worth telling now, by campsite id.

        1. Nights before today (UTC) and outside the target's range go.
        2. Results that are too old prove nothing.
        3. Nights that the latest results no longer hold go.
        4. After each step the scan's filters are applied again, minimum stay included.

        Raises Skip when nothing, or too little, is left.
        """
        today = self.now.date()
        if self.end_date <= today:
            raise Skip(SkipReason.DATES_PASSED)
        if not self._wanted(dto, {opening.campsite.id: frozenset(opening.nights) for opening in dto.openings}):
            raise Skip(SkipReason.FILTERS_UNMATCHED)
        first = max(self.start_date, today)
        ahead = {
            opening.campsite.id: frozenset(night for night in opening.nights if first <= night < self.end_date)
            for opening in dto.openings
        }
        if not self._wanted(dto, ahead):
            raise Skip(SkipReason.DATES_PASSED)
        if self.last_checked_at is None or self.last_checked_at < self.now - self.max_age:
            raise Skip(SkipReason.STALE)
        held = self._wanted(dto, {site_id: nights & self._held(site_id) for site_id, nights in ahead.items()})
        if not held:
            raise Skip(SkipReason.NO_LONGER_AVAILABLE)
        return held

    def _wanted(self, dto: NotificationDTO, nights: Mapping[str, AbstractSet[date]]) -> dict[str, frozenset[date]]:
        return {
            opening.campsite.id: wanted
            for opening in dto.openings
            if (wanted := self._matching(opening, nights[opening.campsite.id]))
        }

    def _matching(self, opening: Opening, nights: AbstractSet[date]) -> frozenset[date]:
        if not self.filters.admit(opening.campsite):
            return frozenset()
        return frozenset(night for stay in self.filters.stays(nights) for night in stay)

    def _held(self, site_id: str) -> frozenset[date]:
        """Nights that the latest results hold; what answers have not spoken of for too long proves nothing either."""
        result = self.results.get(site_id)
        if result is None:
            return frozenset()
        silent = {month for month, since in result.unknown_since.items() if since < self.now - self.max_age}
        return frozenset(night for night in result.nights if first_of_month(night) not in silent)


def without(
    nights: Mapping[str, AbstractSet[date]], told: Mapping[str, AbstractSet[date]]
) -> dict[str, frozenset[date]]:
    """Nights less those that another alert tells."""
    left = {site_id: frozenset(own - told.get(site_id, frozenset())) for site_id, own in nights.items()}
    return {site_id: own for site_id, own in left.items() if own}
