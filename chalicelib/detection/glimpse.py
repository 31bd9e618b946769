"""A glimpse of a campground without a scan, for previews and calendars, at the pace that checks keep to."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import select

from chalicelib.db.tables import campsites, glimpses
from chalicelib.deadline import DeadlinePassed, within as within_seconds
from chalicelib.deps import Deps
from chalicelib.detection.pace import Pace
from chalicelib.providers.contract import CheckError, MonthDocument, Provider, ProviderError
from chalicelib.stays.campsites import Campsite
from chalicelib.stays.nights import first_of_month
from chalicelib.stays.openings import MonthAnswer, Result, SiteMonth

FRESH = timedelta(minutes=2)
"""For so long what was fetched serves everybody who looks."""

MOST_FETCHED = 3  # months a call: a person waits, and each costs a request that a check may need


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What some months of a campground show.

    `sites` has every campsite that was spoken of, with its open nights, if any, each with the moment when it was seen;
    `unknown_since` are its months of which the answer told nothing. `seen_at` is the oldest of these moments. `unknown`
    are the months of which nothing could be learned of any site, `trouble` why, where something went wrong.
    """

    sites: Mapping[str, Result]
    seen_at: datetime | None
    unknown: tuple[date, ...]
    trouble: CheckError | None


def glimpse(
    deps: Deps, provider_id: str, campground_id: str, months: Sequence[date], *, within: float = 12.0
) -> Glimpse:
    """Look at months of a campground, in so many seconds at most. What goes wrong is told in the answer.

    1. What somebody saw within two minutes serves; months that are over are unknown.
    2. Of one campground, one caller of this process asks at a time, and the others then find its answer.
    3. The rest is fetched, a month and a unit of the budget at a time, while the breaker lets requests through.
    4. What came is kept, and completed by what the catalogue knows of its campsites.

    Raises KeyError for an unknown provider, and what the database raises.
    """
    until = time.monotonic() + within
    provider = deps.providers[provider_id]
    months = sorted({first_of_month(month) for month in months})
    wanted = [month for month in months if month >= first_of_month(deps.clock().date())]
    seen = _stored(deps, provider_id, campground_id, wanted)
    trouble = None
    if len(seen) < len(wanted):
        turn = _turn_of(provider_id, campground_id)
        if turn.acquire(timeout=max(0.0, until - time.monotonic())):
            try:
                seen = _stored(deps, provider_id, campground_id, wanted)
                missing = [month for month in wanted if month not in seen][:MOST_FETCHED]
                fetched, trouble = _fetch(deps, provider, campground_id, missing, until)
                seen |= fetched
            finally:
                turn.release()
        else:
            trouble = CheckError.TIMEOUT
    shown = _shown(months, seen, trouble)
    return replace(shown, sites=_completed(deps, provider_id, campground_id, shown.sites))


_Seen = tuple[datetime, Mapping[str, SiteMonth]]
"""When a month was fetched, and what it showed."""

_turns = WeakValueDictionary[tuple[str, str], Lock]()
_turns_lock = Lock()


def _turn_of(provider_id: str, campground_id: str) -> Lock:
    """A campground's lock, which lives as long as somebody holds it or waits for it."""
    with _turns_lock:
        return _turns.setdefault((provider_id, campground_id), Lock())


def _fetch(
    deps: Deps, provider: Provider, campground_id: str, months: Sequence[date], until: float
) -> tuple[dict[date, _Seen], CheckError | None]:
    """Ask for months one by one until something goes wrong; gives what came, and what went wrong."""
    seen: dict[date, _Seen] = {}
    provider_id = provider.info.id
    pace = Pace(deps.database, provider_id, deps.settings.per_minute(provider_id), deps.clock)
    for month in months:
        if time.monotonic() >= until:
            return seen, CheckError.TIMEOUT
        if pace.is_open() or not (pace.take_probe() if pace.half_open() else pace.take(1)):
            # A spent budget is ours, and to whoever waits it is the same: not so many requests.
            return seen, pace.trouble or CheckError.RATE_LIMITED
        began = deps.clock()
        try:
            answer = _ask(pace, provider, campground_id, month, until)
        except ProviderError as error:
            return seen, error.category
        seen[month] = (began, answer.sites)
        _keep(deps, provider_id, campground_id, month, seen[month])
    return seen, None


def _ask(pace: Pace, provider: Provider, campground_id: str, month: date, until: float) -> MonthAnswer:
    """One request, and what it did to the breaker. Raises ProviderError.

    One that is walked away from, because its caller has waited for long enough, says nothing of the site.
    """

    def ask() -> MonthDocument:
        return provider.availability(campground_id, month)

    try:
        answer = within_seconds(until - time.monotonic(), ask).read()
    except DeadlinePassed:
        raise ProviderError(CheckError.TIMEOUT) from None
    except ProviderError as error:
        pace.failed(error)
        raise
    pace.answered()
    return answer


# --- what is kept ----------------------------------------------------------------------------------------------------


def _stored(deps: Deps, provider_id: str, campground_id: str, months: Sequence[date]) -> dict[date, _Seen]:
    g = glimpses.c
    query = select(g.month, g.fetched_at, g.campsites).where(
        g.provider == provider_id,
        g.campground_id == campground_id,
        g.month.in_(months),
        g.fetched_at > deps.clock() - FRESH,
    )
    with deps.database.reading() as connection:
        rows = connection.execute(query).all()
    return {row.month: (row.fetched_at, _sites_of(row.campsites)) for row in rows}


def _sites_of(stored: Mapping[str, tuple[dict[str, Any], list[str] | None]]) -> dict[str, SiteMonth]:
    return {
        site_id: SiteMonth(
            Campsite.from_json(campsite), None if nights is None else frozenset(map(date.fromisoformat, nights))
        )
        for site_id, (campsite, nights) in stored.items()
    }


def _keep(deps: Deps, provider_id: str, campground_id: str, month: date, seen: _Seen) -> None:
    fetched_at, sites = seen
    kept = {
        site_id: [
            site.campsite.to_json(),
            None if site.nights is None else sorted(night.isoformat() for night in site.nights),
        ]
        for site_id, site in sites.items()
    }
    key = {"provider": provider_id, "campground_id": campground_id, "month": month}
    insert = deps.database.upsert(glimpses).values(**key, fetched_at=fetched_at, campsites=kept)
    newer = insert.on_conflict_do_update(
        index_elements=list(key),
        set_={"fetched_at": insert.excluded.fetched_at, "campsites": insert.excluded.campsites},
        where=glimpses.c.fetched_at <= insert.excluded.fetched_at,
    )
    with deps.database.transaction() as connection:
        connection.execute(newer)


# --- what it shows ---------------------------------------------------------------------------------------------------


def _shown(months: Sequence[date], seen: Mapping[date, _Seen], trouble: CheckError | None) -> Glimpse:
    """One picture of several months. A month in which nothing is said of any site is as good as none."""
    told = {month: found for month, found in seen.items() if any(site.nights is not None for site in found[1].values())}
    if trouble is None and len(told) < len(seen):
        trouble = CheckError.BLANK_ANSWER
    sites: dict[str, Result] = {}
    for month in sorted(told):
        fetched_at, by_id = told[month]
        for site_id, site in by_id.items():
            before = sites.get(site_id, Result(site.campsite, {}))
            nights = dict.fromkeys(sorted(site.nights or ()), fetched_at)
            silent = {month: fetched_at} if site.nights is None else {}
            sites[site_id] = Result(
                # A record that tells nothing of its site describes none.
                before.campsite if site.campsite.provider_type is None else site.campsite,
                {**before.nights, **nights},
                {**before.unknown_since, **silent},
            )
    return Glimpse(
        sites=sites,
        seen_at=min((fetched_at for fetched_at, _ in told.values()), default=None),
        unknown=tuple(month for month in months if month not in told),
        trouble=trouble,
    )


def _completed(deps: Deps, provider_id: str, campground_id: str, sites: Mapping[str, Result]) -> dict[str, Result]:
    c = campsites.c
    query = select(c.campsite_id, c.campsite).where(c.provider == provider_id, c.campground_id == campground_id)
    with deps.database.reading() as connection:
        metadata = {site_id: data for site_id, data in connection.execute(query) if site_id in sites}
    return {
        site_id: replace(result, campsite=result.campsite.completed_by(Campsite.from_json(metadata[site_id])))
        if site_id in metadata
        else result
        for site_id, result in sites.items()
    }
