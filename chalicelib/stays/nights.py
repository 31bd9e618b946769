"""Nights, months and runs. Night `d` is slept from `d` to `d + 1`."""

from collections.abc import Iterable
from datetime import date, timedelta

ONE_DAY = timedelta(days=1)

Run = tuple[date, ...]
"""Consecutive nights, in order."""


def runs(nights: Iterable[date]) -> list[Run]:
    """Split nights into maximal stretches of consecutive ones, in order.

    >>> [len(run) for run in runs([date(2027, 7, 1), date(2027, 7, 2), date(2027, 7, 9)])]
    [2, 1]
    """
    found: list[list[date]] = []
    for night in sorted(set(nights)):
        if found and night - found[-1][-1] == ONE_DAY:
            found[-1].append(night)
        else:
            found.append([night])
    return [tuple(run) for run in found]


def first_of_month(day: date) -> date:
    """The month that a night belongs to, named by its first day."""
    return day.replace(day=1)


def months(start: date, end: date) -> list[date]:
    """First days of the months that the nights of `[start, end)` touch: a checkout on the 1st touches none."""
    found: list[date] = []
    month = first_of_month(start)
    while month < end and start < end:
        found.append(month)
        month = first_of_month(month + timedelta(days=32))
    return found


def stay_words(run: Run) -> str:
    """A run as people say it: `Fri 3 Sep → Mon 6 Sep, 3 nights` (arrival and checkout)."""
    nights = "1 night" if len(run) == 1 else f"{len(run)} nights"
    return f"{_day(run[0])} → {_day(run[-1] + ONE_DAY)}, {nights}"


def _day(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b}"
