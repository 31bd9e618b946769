"""What is known of one campsite, as far as filters and texts need it. None and empty mean unknown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from chalicelib.stays.nights import runs

TYPES = ("tent", "rv", "cabin", "group", "other")
"""The types that a scan may ask for."""

TENT_EQUIPMENT = frozenset({"tent", "small tent", "large tent over 9x12`"})
RV_EQUIPMENT = frozenset(
    {"rv", "rv/motorhome", "trailer", "fifth wheel", "pop up", "pickup camper", "caravan/camper van"}
)


@dataclass(frozen=True, slots=True)
class Equipment:
    """A permitted piece of equipment by the site's own name, and its greatest length in feet (None: no limit told)."""

    name: str
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Campsite:
    """One campsite of one campground.

    `provider_type` is the booking site's own word ("STANDARD NONELECTRIC"), `types` what it means for a camper.
    `min_stay` is the fewest nights that the site can be booked for; nothing is filtered by it.
    """

    id: str
    name: str = ""
    loop: str | None = None
    provider_type: str | None = None
    types: frozenset[str] = frozenset()
    electric: bool | None = None
    accessible: bool | None = None
    min_people: int | None = None
    max_people: int | None = None
    equipment: tuple[Equipment, ...] = ()
    min_stay: int | None = None

    def too_short(self, nights: Iterable[date]) -> tuple[date, ...]:
        """Those of some open nights whose run is shorter than what this site can be booked for."""
        return tuple(night for run in runs(nights) if len(run) < (self.min_stay or 1) for night in run)

    def completed_by(self, metadata: "Campsite | None") -> "Campsite":
        """This site as an availability answer shows it, with what the campsite metadata adds.

        A stated hookup beats the type's word; permitted equipment narrows tent and rv.
        """
        if metadata is None:
            return self
        types = self.types or metadata.types
        has_people = self.max_people is not None
        return replace(
            self,
            name=metadata.name if self.name in {"", self.id} and metadata.name else self.name,
            loop=self.loop or metadata.loop,
            provider_type=self.provider_type or metadata.provider_type,
            types=_narrowed(types, metadata.equipment),
            electric=self.electric if metadata.electric is None else metadata.electric,
            accessible=metadata.accessible,
            min_people=self.min_people if has_people else metadata.min_people,
            max_people=self.max_people if has_people else metadata.max_people,
            equipment=metadata.equipment,
            min_stay=metadata.min_stay if self.min_stay is None else self.min_stay,
        )

    def to_json(self) -> dict[str, Any]:
        """The one stored form: in results, payloads and the catalogue."""
        return {
            "campsite_id": self.id,
            "name": self.name,
            "loop": self.loop,
            "type": self.provider_type,
            "types": sorted(self.types),
            "electric": self.electric,
            "accessible": self.accessible,
            "min_people": self.min_people,
            "max_people": self.max_people,
            "equipment": [[item.name, item.max_length] for item in self.equipment],
            "min_stay": self.min_stay,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Campsite":
        """The way back from `to_json`, from the form before there was a `min_stay` too.

        Raises KeyError or TypeError for anything else.
        """
        return cls(
            id=data["campsite_id"],
            name=data["name"],
            loop=data["loop"],
            provider_type=data["type"],
            types=frozenset(data["types"]),
            electric=data["electric"],
            accessible=data["accessible"],
            min_people=data["min_people"],
            max_people=data["max_people"],
            equipment=tuple(Equipment(name, length) for name, length in data["equipment"]),
            min_stay=data.get("min_stay"),
        )


def types_of(provider_type: str | None) -> frozenset[str]:
    """What Recreation.gov's word for a site means: `STANDARD NONELECTRIC` is tent and rv, any `GROUP` also group.

    The words are those of its availability answers and of RIDB, as counted in 2023 and 2026.
    """
    if not provider_type or not provider_type.strip():
        return frozenset()
    words = provider_type.upper()
    types: set[str] = set()
    if "STANDARD" in words:
        types |= {"tent", "rv"}
    if any(word in words for word in ("TENT", "WALK TO", "HIKE TO", "BOAT IN")):
        types.add("tent")
    if "RV" in words.split():
        types.add("rv")
    if any(word in words for word in ("CABIN", "YURT", "LOOKOUT", "SHELTER")):
        types.add("cabin")
    if not types:
        types.add("other")
    if "GROUP" in words:
        types.add("group")
    return frozenset(types)


def electric_by_type(provider_type: str | None) -> bool | None:
    """Whether the type's own word says electric: `NONELECTRIC` contains ELECTRIC and is not. None: it says nothing."""
    if not provider_type:
        return None
    words = provider_type.upper()
    if "NONELECTRIC" in words.replace("-", "").replace(" ", ""):
        return False
    return True if "ELECTRIC" in words else None


def _narrowed(types: frozenset[str], equipment: tuple[Equipment, ...]) -> frozenset[str]:
    """Take tent or rv away where the permitted equipment names only the other one."""
    names = {item.name.strip().casefold() for item in equipment}
    permitted = {kind for kind, known in (("tent", TENT_EQUIPMENT), ("rv", RV_EQUIPMENT)) if names & known}
    shelter = types & {"tent", "rv"}
    if not permitted or not shelter & permitted:
        return types
    return (types - {"tent", "rv"}) | (shelter & permitted)
