"""What can be asked for: the parts of a scan that its owner decides, and whether they make sense."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from uuid import UUID

from chalicelib.deps import Deps
from chalicelib.errors import Invalid
from chalicelib.stays.campsites import TYPES
from chalicelib.stays.filters import Filters
from chalicelib.stays.nights import ONE_DAY

MODES = ("summary", "direct")
MAX_ID = 64  # characters of a campground's id
MAX_WORD = 100  # of a loop's or a campsite's name
MAX_EQUIPMENT = 60
MAX_WORDS = 200  # of loops, of campsites
LONGEST = timedelta(days=3 * 366)
"""No booking site releases more, and each month costs a request at every check."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What to watch, for which stays, and how to tell of it.

    `start_date` is the first night that counts, `end_date` checkout; `channel_id` None: the owner's oldest enabled one.
    """

    provider: str
    campground_id: str
    start_date: date
    end_date: date
    filters: Filters = field(default_factory=Filters)
    mode: str = "summary"
    channel_id: UUID | None = None


def checked(deps: Deps, request: ScanRequest) -> ScanRequest:
    """The request in the form that is kept: names trimmed, empty ones dropped. Raises Invalid, naming the part."""
    request = replace(request, campground_id=request.campground_id.strip(), filters=_trimmed(request.filters))
    if request.provider not in deps.providers:
        raise Invalid("provider", f"there is no such provider; there are: {', '.join(sorted(deps.providers))}")
    if not 0 < len(request.campground_id) <= MAX_ID or not request.campground_id.isprintable():
        raise Invalid("campground_id", f"a campground's id is 1 to {MAX_ID} characters")
    if request.mode not in MODES:
        raise Invalid("mode", f"the mode is one of: {', '.join(MODES)}")
    _check_dates(request, deps.clock().date())
    _check_filters(request.filters)
    _check_some_stay_fits(request)
    return request


def same_wishes(one: Filters, other: Filters) -> bool:
    """Whether two scans ask for the same, names compared without case as matching does."""
    return _folded(one) == _folded(other)


def _check_dates(request: ScanRequest, today: date) -> None:
    if request.start_date >= request.end_date:
        raise Invalid("end_date", "the checkout day must come after the first night")
    if request.end_date <= today:
        raise Invalid("end_date", f"these dates are over: the last night, {request.end_date - ONE_DAY}, has passed")
    if request.end_date - request.start_date > LONGEST:
        raise Invalid("end_date", "a scan may watch three years at most")


def _check_filters(filters: Filters) -> None:
    if filters.min_stay_length < 1:
        raise Invalid("min_stay_length", "a stay is one night at least")
    if unknown := filters.preferred_types - set(TYPES):
        raise Invalid("preferred_types", f"unknown: {', '.join(sorted(unknown))}; the types are: {', '.join(TYPES)}")
    if filters.people is not None and not 1 <= filters.people <= 1000:
        raise Invalid("people", "people are counted from 1 to 1000")
    if filters.equipment is not None and not _is_word(filters.equipment, MAX_EQUIPMENT):
        raise Invalid("equipment", f"equipment is named in 1 to {MAX_EQUIPMENT} characters")
    if filters.equipment_length is not None:
        if filters.equipment is None:
            raise Invalid("equipment_length", "a length needs the equipment that has it")
        if not 1 <= filters.equipment_length <= 1000:
            raise Invalid("equipment_length", "a length is given in feet, from 1 to 1000")
    for part in ("loops_wanted", "loops_unwanted", "campsites_wanted", "campsites_unwanted"):
        words: frozenset[str] = getattr(filters, part)
        if len(words) > MAX_WORDS or not all(_is_word(word, MAX_WORD) for word in words):
            raise Invalid(part, f"at most {MAX_WORDS} names of at most {MAX_WORD} characters")
    if not filters.arrival_weekdays <= set(range(7)):
        raise Invalid("arrival_weekdays", "weekdays count from Monday, 0, to Sunday, 6")


def _check_some_stay_fits(request: ScanRequest) -> None:
    """A scan that could never match is a mistake: say so now rather than stay silent for ever."""
    length = (request.end_date - request.start_date).days
    if request.filters.min_stay_length > length:
        raise Invalid("min_stay_length", f"between these dates there are only {length} nights")
    if not request.filters.stays(request.start_date + timedelta(days=day) for day in range(length)):
        raise Invalid("arrival_weekdays", "between these dates no long enough stay begins on such a day")


def _is_word(word: str, limit: int) -> bool:
    return 0 < len(word) <= limit and word.isprintable()


def _trimmed(filters: Filters) -> Filters:
    return replace(
        filters,
        equipment=filters.equipment.strip() if filters.equipment is not None else None,
        loops_wanted=_words(filters.loops_wanted),
        loops_unwanted=_words(filters.loops_unwanted),
        campsites_wanted=_words(filters.campsites_wanted),
        campsites_unwanted=_words(filters.campsites_unwanted),
    )


def _words(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.strip() for word in words) - {""}


def _folded(filters: Filters) -> Filters:
    def fold(words: Iterable[str]) -> frozenset[str]:
        return frozenset(" ".join(word.split()).casefold() for word in words)

    return replace(
        filters,
        equipment=filters.equipment.casefold() if filters.equipment is not None else None,
        loops_wanted=fold(filters.loops_wanted),
        loops_unwanted=fold(filters.loops_unwanted),
        campsites_wanted=fold(filters.campsites_wanted),
        campsites_unwanted=fold(filters.campsites_unwanted),
    )
