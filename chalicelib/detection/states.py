"""How booking sites are: whether they answer, and how much of their budget is left, as people see it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, func, select

from chalicelib.db import tables
from chalicelib.deps import Deps
from chalicelib.detection.pace import requests_left
from chalicelib.history import iso


@dataclass(frozen=True, slots=True)
class ProviderState:
    """One booking site.

    `state` is `available`; `unavailable`: it is left alone until `next_try_at`; or `recovering`: the next check finds
    out whether it is well again. Checks fail since `unavailable_since`, for the reason `error_category`.
    `requests_left` of `per_minute` may be made now. `last_success_at` is when the last check began that succeeded.
    """

    id: str
    name: str
    state: str
    unavailable_since: datetime | None
    error_category: str | None
    next_try_at: datetime | None
    per_minute: int
    requests_left: int
    last_success_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "unavailable_since": _iso(self.unavailable_since),
            "error_category": self.error_category,
            "next_try_at": _iso(self.next_try_at),
            "per_minute": self.per_minute,
            "requests_left": self.requests_left,
            "last_success_at": _iso(self.last_success_at),
        }


def provider_states(deps: Deps) -> list[ProviderState]:
    """Every booking site that this instance can watch, by id, in two queries.

    The second reads each target once, as detect does every minute: an index for it would be written at every check.
    """
    target = tables.unique_targets.c
    last = func.max(target.last_checked_at, type_=target.last_checked_at.type).label("last")
    with deps.database.reading() as connection:
        stored = connection.execute(select(tables.provider_states)).mappings().all()
        succeeded = connection.execute(select(target.provider, last).group_by(target.provider)).all()
    states = {row["provider"]: row for row in stored}
    successes: dict[str, datetime | None] = {row.provider: row.last for row in succeeded}
    now = deps.clock()
    return [_state(deps, name, states.get(name), successes.get(name), now) for name in sorted(deps.providers)]


def _state(
    deps: Deps, provider_id: str, row: RowMapping | None, last_success_at: datetime | None, now: datetime
) -> ProviderState:
    """One site; it has no row until it is first asked."""
    open_until: datetime | None = row["open_until"] if row else None
    left_alone = open_until is not None and open_until > now
    per_minute = deps.settings.per_minute(provider_id)
    return ProviderState(
        id=provider_id,
        name=deps.providers[provider_id].info.name,
        state="available" if open_until is None else "unavailable" if left_alone else "recovering",
        unavailable_since=row["unavailable_since"] if row else None,
        error_category=row["error_category"] if row else None,
        next_try_at=open_until if left_alone else None,
        per_minute=per_minute,
        requests_left=requests_left(row["drawn_until"] if row else 0, per_minute, now),
        last_success_at=last_success_at,
    )


def _iso(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None
