"""What was said about the nights of campsites: now, after so many answers, from a moment on, or to and fro."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

AVAILABLE = "Available"
RESERVED = "Reserved"


@dataclass(frozen=True, slots=True)
class Change:
    """One night of one campsite gets a status."""

    campground_id: str
    campsite_id: str
    night: date
    status: str


@dataclass(frozen=True, slots=True)
class _Flicker:
    """A night that opens at `start`, is taken after `open_for`, opens again after `taken_for`, and so on."""

    start: datetime
    open_for: timedelta
    taken_for: timedelta

    def status(self, now: datetime) -> str:
        since = now - self.start
        if since < timedelta(0):
            return RESERVED
        return AVAILABLE if since % (self.open_for + self.taken_for) < self.open_for else RESERVED


class Nights:
    """The calendar of all campgrounds; its owner sees to it that one thread at a time uses it."""

    def __init__(self) -> None:
        self._statuses: dict[tuple[str, str, date], str] = {}
        self._flickers: dict[tuple[str, str, date], _Flicker] = {}
        self._answers: Counter[tuple[str, date]] = Counter()
        self._after: list[tuple[int, Change]] = []
        self._at: list[tuple[datetime, Change]] = []

    def change(self, change: Change, *, after: int = 0, at: datetime | None = None) -> None:
        """Make a change at once, `after` that many further answers for the night's month, or from `at` on."""
        if at is not None:
            self._at.append((at, change))
        elif after > 0:
            self._after.append((self._answers[_month_of(change)] + after, change))
        else:
            self._make(change)

    def flicker(self, change: Change, start: datetime, open_for: timedelta, taken_for: timedelta) -> None:
        """Let the night of `change` (its status is not used) open and close by turns from `start` on."""
        self._flickers[change.campground_id, change.campsite_id, change.night] = _Flicker(start, open_for, taken_for)

    def told(self, campground_id: str, first: date, now: datetime) -> dict[tuple[str, date], str]:
        """Give the status of each (campsite id, night) of the month that was told, and count this as an answer."""
        self._make_due(now)
        self._answers[campground_id, first] += 1
        flickering = {key: flicker.status(now) for key, flicker in self._flickers.items()}
        return {
            (campsite_id, night): status
            for (campground, campsite_id, night), status in (self._statuses | flickering).items()
            if campground == campground_id and night.replace(day=1) == first
        }

    def _make_due(self, now: datetime) -> None:
        counted = [(due, change) for due, change in self._after if self._answers[_month_of(change)] >= due]
        self._after = [item for item in self._after if item not in counted]
        timed = sorted((item for item in self._at if item[0] <= now), key=lambda item: item[0])
        self._at = [item for item in self._at if item[0] > now]
        for _, change in [*counted, *timed]:
            self._make(change)

    def _make(self, change: Change) -> None:
        key = (change.campground_id, change.campsite_id, change.night)
        self._flickers.pop(key, None)
        self._statuses[key] = change.status


def each_night(nights: date | Iterable[date]) -> list[date]:
    """Give a list of nights, whether one or several were named."""
    return [nights] if isinstance(nights, date) else list(nights)


def _month_of(change: Change) -> tuple[str, date]:
    return change.campground_id, change.night.replace(day=1)
