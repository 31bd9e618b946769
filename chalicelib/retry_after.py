"""`Retry-After`: what an upstream says about when to come back, for booking sites and channels alike."""

import math
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(days=366)
"""Nobody waits longer: a greater number is a mistake, and adding it to a date could overflow."""

_SECONDS = re.compile(r"\s*(\d{1,20})(\.\d{1,20})?\s*", re.ASCII)


def retry_after(value: str | None, now: datetime) -> timedelta | None:
    """Tell how long to wait, from seconds (some services give fractions) or an HTTP date.

    None for garbage, negatives and moments that have passed: nothing usable was said.
    """
    if value is None:
        return None
    if found := _SECONDS.fullmatch(value):
        seconds = math.ceil(float(found[0]))
        return timedelta(seconds=min(seconds, int(LONGEST.total_seconds())))
    moment = _http_date(value)
    if moment is None or moment <= now:
        return None
    return min(moment - now, LONGEST)


def moment_of(unix_seconds: str | None, now: datetime) -> datetime | None:
    """Tell the moment that a reset header names in Unix seconds; None when it is garbage, past or absurdly far away."""
    if unix_seconds is None or not (found := _SECONDS.fullmatch(unix_seconds)):
        return None
    wait = math.ceil(float(found[0])) - now.timestamp()
    return now + timedelta(seconds=wait) if 0 < wait <= LONGEST.total_seconds() else None


def _http_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # "-0000" and a missing zone are read without one; HTTP dates are always GMT.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
