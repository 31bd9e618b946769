"""Says an alert back, so that whoever asked for it can see whether they were understood."""

from collections.abc import Collection, Iterable
from datetime import date

from chalicelib.scans.request import ScanRequest
from chalicelib.stays.filters import Filters

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def sentence(
    request: ScanRequest, campground_name: str | None, channel_name: str | None, *, today: date | None = None
) -> str:
    """What a request asks for, every wish of it, without a full stop.

    The year is left out where `today` is in it; without `today` it is always said. A channel without a name is none in
    particular.
    """
    filters = request.filters
    where = campground_name or f"campground {request.campground_id}"
    parts = [
        f"Any {_site(filters)} at {where}{_features(filters)}",
        *_places(filters),
        f"{_stay(filters)} {_dates(request.start_date, request.end_date, today)}",
    ]
    if request.mode == "direct":
        parts.append("one message a site")
    if channel_name:
        parts.append(f"told to {channel_name}")
    return ", ".join(parts)


def _site(filters: Filters) -> str:
    types = _or("RV" if word == "rv" else word for word in sorted(filters.preferred_types))
    return " ".join(word for word in ("accessible" if filters.require_accessible else "", types, "site") if word)


def _features(filters: Filters) -> str:
    said: list[str] = []
    if filters.require_electric:
        said.append("with electricity")
    if filters.people is not None:
        said.append(f"for {_count(filters.people, 'person', 'people')}")
    if filters.equipment is not None:
        said.append(f"that takes {filters.equipment}")
        if filters.equipment_length is not None:
            said.append(f"of {_count(filters.equipment_length, 'foot', 'feet')}")
    return "".join(f" {words}" for words in said)


def _places(filters: Filters) -> Iterable[str]:
    if filters.loops_wanted:
        yield f"in {_loops(filters.loops_wanted)}"
    if filters.loops_unwanted:
        yield f"not in {_loops(filters.loops_unwanted)}"
    if filters.campsites_wanted:
        yield f"only {_sites(filters.campsites_wanted)}"
    if filters.campsites_unwanted:
        yield f"not {_sites(filters.campsites_unwanted)}"


def _stay(filters: Filters) -> str:
    nights = f"{_count(filters.min_stay_length, 'night', 'nights')} or more"
    days = _or(WEEKDAYS[day] for day in sorted(filters.arrival_weekdays))
    return f"{nights} from a {days} on" if days else nights


def _dates(arrival: date, checkout: date, today: date | None) -> str:
    """`between Fri 3 and Mon 13 Sep 2027`: what both have in common is said once."""
    year = "" if today is not None and arrival.year == checkout.year == today.year else f" {checkout.year}"
    first = f"{arrival:%a} {arrival.day}"
    if arrival.year != checkout.year:
        first += f" {arrival:%b} {arrival.year}"
    elif arrival.month != checkout.month:
        first += f" {arrival:%b}"
    return f"between {first} and {checkout:%a} {checkout.day} {checkout:%b}{year}"


def _loops(names: Collection[str]) -> str:
    """Many a loop's name begins with the word."""
    bare = all(name.casefold().startswith("loop") for name in names)
    return _or(sorted(names, key=str.casefold)) if bare else f"loop {_or(sorted(names, key=str.casefold))}"


def _sites(names: Collection[str]) -> str:
    return f"{'site' if len(names) == 1 else 'sites'} {_listed(sorted(names, key=str.casefold), 'and')}"


def _or(words: Iterable[str]) -> str:
    return _listed(list(words), "or")


def _listed(words: list[str], last: str) -> str:
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
