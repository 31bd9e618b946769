"""Openings: what a check found that the last successful check had not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from chalicelib.stays.campsites import Campsite
from chalicelib.stays.nights import first_of_month

UNKNOWN_KEPT = timedelta(hours=24)
"""How long a stored opening outlives answers that say nothing about its month."""


@dataclass(frozen=True, slots=True)
class SiteMonth:
    """One campsite in one month's answer: its open nights, or None where the answer says nothing (unknown)."""

    campsite: Campsite
    nights: frozenset[date] | None


@dataclass(frozen=True, slots=True)
class MonthAnswer:
    """What a booking site said of one campground in one month (named by its first day).

    `blank`: it said nothing of any campsite. `oddities` counts what was not understood, by a short fixed word.
    """

    month: date
    sites: Mapping[str, SiteMonth]
    blank: bool = False
    oddities: Mapping[str, int] = field(default_factory=dict[str, int])

    def described(self, metadata: Mapping[str, Campsite]) -> "MonthAnswer":
        """The same answer, its campsites completed by what the metadata knows of them."""
        sites = {
            campsite_id: replace(site, campsite=site.campsite.completed_by(metadata.get(campsite_id)))
            for campsite_id, site in self.sites.items()
        }
        return replace(self, sites=sites)


@dataclass(frozen=True, slots=True)
class Result:
    """The open nights of one campsite, each with the moment when it was found open.

    `unknown_since` holds, by month, since when answers have said nothing; such a month's nights are remembered ones.
    """

    campsite: Campsite
    nights: Mapping[date, datetime]
    unknown_since: Mapping[date, datetime] = field(default_factory=dict[date, datetime])

    def known_nights(self) -> frozenset[date]:
        """Open nights that the last check itself saw."""
        return frozenset(night for night in self.nights if first_of_month(night) not in self.unknown_since)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Results as they are to be stored, and what is news in them, by campsite id.

    `openings` are news to everyone; `seen_again` maps nights that were unknown to the moment since when: news to those
    who joined in between.
    """

    results: Mapping[str, Result]
    openings: Mapping[str, frozenset[date]]
    seen_again: Mapping[str, Mapping[date, datetime]]


def compare(
    stored: Mapping[str, Result], answers: Iterable[MonthAnswer], start: date, end: date, now: datetime
) -> Comparison:
    """Compare the answers for every month of the nights `[start, end)` with what is stored.

    A blank month, or a site without nights in a month, is unknown: what is stored of it stays, for 24 hours at most.
    A site missing from a good answer, or a night missing from a month that has others, is not open.
    """
    by_month = {answer.month: answer for answer in answers}
    campsites = _described_best(stored, by_month.values())
    results: dict[str, Result] = {}
    openings: dict[str, frozenset[date]] = {}
    seen_again: dict[str, dict[date, datetime]] = {}
    nothing = Result(Campsite(""), {})
    for campsite_id in campsites:
        before = stored.get(campsite_id, nothing)
        nights: dict[date, datetime] = {}
        unknown_since: dict[date, datetime] = {}
        new: set[date] = set()
        for month, answer in by_month.items():
            seen = _seen(answer, campsite_id)
            if seen is None:
                kept = {
                    night: found_at
                    for night, found_at in before.nights.items()
                    if first_of_month(night) == month and start <= night < end
                }
                since = before.unknown_since.get(month, now)
                if kept and now - since < UNKNOWN_KEPT:
                    nights |= kept
                    unknown_since[month] = since
                continue
            for night in sorted(seen):
                if not start <= night < end:
                    continue
                nights[night] = before.nights.get(night, now)
                if night not in before.nights:
                    new.add(night)
                elif month in before.unknown_since:
                    seen_again.setdefault(campsite_id, {})[night] = before.unknown_since[month]
        if nights:
            results[campsite_id] = Result(campsites[campsite_id], nights, unknown_since)
        if new:
            openings[campsite_id] = frozenset(new)
    return Comparison(results, openings, seen_again)


def _described_best(stored: Mapping[str, Result], answers: Iterable[MonthAnswer]) -> dict[str, Campsite]:
    """Every campsite with open nights, and what is stored. A record that told nothing of its site describes none.

    Nor does one without open nights: metadata completes the others alone, and what is kept of a site stays whole.
    """
    found = {campsite_id: result.campsite for campsite_id, result in stored.items()}
    for answer in answers:
        for campsite_id, site in answer.sites.items():
            if site.nights and (site.campsite.provider_type is not None or campsite_id not in found):
                found[campsite_id] = site.campsite
    return found


def _seen(answer: MonthAnswer, campsite_id: str) -> frozenset[date] | None:
    """Open nights that an answer shows for a campsite; None where it says nothing."""
    if answer.blank:
        return None
    site = answer.sites.get(campsite_id)
    return site.nights if site else frozenset()
