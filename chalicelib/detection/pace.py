"""Pace: a provider's budget and breaker. Both live in the database, since an invocation remembers nothing.

The budget is a token bucket of one minute's capacity, kept as one number: the moment until which it is spent.
"""

import logging
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from sqlalchemy import Connection, case, or_, select, update

from chalicelib.db.engine import Database
from chalicelib.db.tables import provider_states
from chalicelib.history import Clock
from chalicelib.providers.contract import CheckError, ProviderError

log = logging.getLogger(__name__)

SHORTEST = timedelta(seconds=60)
LONGEST = timedelta(minutes=30)
PROBE_LEASE = timedelta(seconds=60)
IN_A_ROW = 3
"""Server errors and timeouts that open the breaker; being told to stop (403, 429, Retry-After) opens it at once."""

TOLD_TO_STOP = frozenset({CheckError.RATE_LIMITED, CheckError.BLOCKED})
FEEDS = TOLD_TO_STOP | {CheckError.SERVER_ERROR, CheckError.TIMEOUT}
_ROUNDING = 1e-6


def requests_left(drawn_until: float, per_minute: int, now: datetime) -> int:
    """How many requests a budget that is spent until `drawn_until` still allows at `now`."""
    spent = max(0.0, drawn_until - now.timestamp()) * per_minute / 60
    return max(0, int(per_minute - spent + _ROUNDING))


class Pace:
    """Budget and breaker of one provider. `per_minute` requests may be made; safe under threads and processes."""

    def __init__(self, database: Database, provider: str, per_minute: int, clock: Clock) -> None:
        self._database = database
        self._provider = provider
        self._clock = clock
        self._seconds_each = 60 / per_minute
        self._capacity = per_minute
        self._lock = Lock()
        state = self._read()
        if state is None:
            with database.transaction() as connection:
                insert = database.upsert(provider_states).values(provider=provider)
                connection.execute(insert.on_conflict_do_nothing())
        self._open_until: datetime | None = state.open_until if state else None
        self.trouble = CheckError(state.error_category) if state and state.error_category else None
        """What opened the breaker, when this was made."""
        self._troubled = bool(state and (state.failures or state.unavailable_since))

    def is_open(self) -> bool:
        """The provider is to be left alone for now."""
        return self._open_until is not None and self._open_until > self._clock()

    def half_open(self) -> bool:
        """The provider was left alone for long enough: one request may find out whether it is well again."""
        return self._open_until is not None and self._open_until <= self._clock()

    def take(self, requests: int) -> bool:
        """Draw on the budget for so many requests, all or none; never waits.

        More than the bucket holds are let through when it is full, and paid off later: a long range must not starve.
        """
        return self._draw(requests, provider_states.c.open_until.is_(None))

    def take_probe(self) -> bool:
        """Draw for the one request of a half-open breaker; False when another process makes it."""
        now = self._clock()
        s = provider_states.c
        free = or_(s.probe_until.is_(None), s.probe_until <= now)
        return self._draw(1, (s.open_until <= now) & free, probe_until=now + PROBE_LEASE)

    def _draw(self, requests: int, condition: Any, **values: Any) -> bool:
        now = self._clock().timestamp()
        s = provider_states.c
        room = max(0, self._capacity - requests) * self._seconds_each + _ROUNDING
        drawn = case((s.drawn_until > now, s.drawn_until), else_=now) + requests * self._seconds_each
        statement = (
            update(provider_states)
            .where(s.provider == self._provider, s.drawn_until <= now + room, condition)
            .values(drawn_until=drawn, **values)
        )
        with self._database.transaction() as connection:
            return connection.execute(statement).rowcount == 1

    def answered(self) -> None:
        """The provider answered, be it with nothing of use: earlier failures are forgotten, a half-open breaker closes.

        An open breaker stays: the answer is that of a request which was under way when another was refused.
        """
        with self._lock:
            if not self._troubled or self.is_open():
                return
            self._troubled = False
            self._open_until = None
        with self._database.transaction() as connection:
            state = self._locked(connection)
            if state.open_until is not None and state.open_until > self._clock():
                return
            connection.execute(
                update(provider_states)
                .where(provider_states.c.provider == self._provider)
                .values(
                    failures=0,
                    backoff_seconds=0,
                    open_until=None,
                    probe_until=None,
                    unavailable_since=None,
                    error_category=None,
                )
            )
        if state.unavailable_since is not None:
            log.info("provider is available again", extra={"provider": self._provider})

    def failed(self, error: ProviderError) -> None:
        """Count a failure. Only 403, 429, 5xx and timeouts feed the breaker."""
        if error.category not in FEEDS:
            if error.category is not CheckError.TRANSPORT_ERROR:
                self.answered()
            return
        now = self._clock()
        with self._database.transaction() as connection:
            state = self._locked(connection)
            values: dict[str, Any] = {"failures": state.failures + 1, "probe_until": None}
            told_to_stop = error.category in TOLD_TO_STOP or error.retry_after is not None
            if told_to_stop or state.open_until is not None or state.failures + 1 >= IN_A_ROW:
                values |= _opened(state, error, now)
            connection.execute(
                update(provider_states).where(provider_states.c.provider == self._provider).values(**values)
            )
        with self._lock:
            self._troubled = True
            self._open_until = values.get("open_until", state.open_until)
        if "unavailable_since" in values and state.unavailable_since is None:
            category = error.category.value
            log.warning("provider became unavailable", extra={"provider": self._provider, "error_category": category})

    def _read(self) -> Any:
        with self._database.reading() as connection:
            return connection.execute(
                select(provider_states).where(provider_states.c.provider == self._provider)
            ).one_or_none()

    def _locked(self, connection: Connection) -> Any:
        return connection.execute(
            select(provider_states).where(provider_states.c.provider == self._provider).with_for_update()
        ).one()


def _opened(state: Any, error: ProviderError, now: datetime) -> dict[str, Any]:
    """Leave the provider alone: 60 s, doubling to 30 min while it stays in trouble, never shorter than it asked for."""
    open_until: datetime | None = state.open_until
    backoff = timedelta(seconds=state.backoff_seconds)
    if open_until is None or open_until <= now:  # else: a request that was under way when another one failed
        open_until = now
        backoff = min(LONGEST, max(SHORTEST, backoff * 2))
    return {
        "backoff_seconds": int(backoff.total_seconds()),
        "open_until": max(open_until, now + max(backoff, error.retry_after or timedelta())),
        "unavailable_since": state.unavailable_since or now,
        "error_category": error.category.value,
    }
