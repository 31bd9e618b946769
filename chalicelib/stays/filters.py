"""What a scan wants, and which nights of a campsite satisfy it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date

from chalicelib.stays.campsites import RV_EQUIPMENT, TENT_EQUIPMENT, Campsite
from chalicelib.stays.nights import Run, runs


@dataclass(frozen=True, slots=True)
class Filters:
    """A scan's wishes; every default wants nothing in particular.

    Lengths are in feet, weekdays count from Monday 0, loops and campsites are compared without case.
    A campsite may be named by its id or by its name ("044").
    """

    min_stay_length: int = 1
    preferred_types: frozenset[str] = frozenset()
    require_electric: bool = False
    require_accessible: bool = False
    people: int | None = None
    equipment: str | None = None
    equipment_length: int | None = None
    loops_wanted: frozenset[str] = frozenset()
    loops_unwanted: frozenset[str] = frozenset()
    campsites_wanted: frozenset[str] = frozenset()
    campsites_unwanted: frozenset[str] = frozenset()
    arrival_weekdays: frozenset[int] = frozenset()

    def admit(self, campsite: Campsite) -> bool:
        """Whether the campsite itself will do. What is unknown never passes a filter that requires it."""
        names = {_fold(campsite.id), _fold(campsite.name)} - {""}
        loop = _fold(campsite.loop or "")
        return (
            (not self.preferred_types or bool(self.preferred_types & campsite.types))
            and (not self.require_electric or campsite.electric is True)
            and (not self.require_accessible or campsite.accessible is True)
            and (self.people is None or _holds(campsite, self.people))
            and (self.equipment is None or _permits(campsite, self.equipment, self.equipment_length))
            and (not self.loops_wanted or loop in _folded(self.loops_wanted))
            and (not loop or loop not in _folded(self.loops_unwanted))
            and (not self.campsites_wanted or bool(names & _folded(self.campsites_wanted)))
            and not names & _folded(self.campsites_unwanted)
        )

    def stays(self, nights: Iterable[date]) -> list[Run]:
        """The runs of open nights in which a wanted stay fits, each cut to begin at its first possible arrival."""
        found: list[Run] = []
        for run in runs(nights):
            stay = self._from_first_arrival(run)
            if len(stay) >= self.min_stay_length:
                found.append(stay)
        return found

    def matching_nights(self, campsite: Campsite, nights: Collection[date], new: Collection[date]) -> frozenset[date]:
        """The nights worth telling: those of the matching runs that hold at least one new night. Empty: no match."""
        if not new or not self.admit(campsite):
            return frozenset()
        news = frozenset(new)
        return frozenset(night for stay in self.stays(nights) if news.intersection(stay) for night in stay)

    def _from_first_arrival(self, run: Run) -> Run:
        if not self.arrival_weekdays:
            return run
        for index, night in enumerate(run):
            if night.weekday() in self.arrival_weekdays:
                return run[index:]
        return ()


def _holds(campsite: Campsite, people: int) -> bool:
    """Whether min ≤ people ≤ max; a greatest number of 0 or none is unknown."""
    return bool(campsite.max_people) and (campsite.min_people or 0) <= people <= (campsite.max_people or 0)


def _permits(campsite: Campsite, wanted: str, length: int | None) -> bool:
    """Whether permitted equipment names what is wanted; "tent" and "rv" stand for all of their kind."""
    names = {"tent": TENT_EQUIPMENT, "rv": RV_EQUIPMENT}.get(_fold(wanted), frozenset({_fold(wanted)}))
    return any(
        _fold(item.name) in names and (length is None or not item.max_length or length <= item.max_length)
        for item in campsite.equipment
    )


def _folded(words: Iterable[str]) -> set[str]:
    return {_fold(word) for word in words}


def _fold(word: str) -> str:
    return " ".join(word.split()).casefold()
