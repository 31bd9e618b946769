"""The payload of an alert: what was seen, in a form that can be checked and counted again when it is told."""

from collections.abc import Mapping, Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date, datetime
from types import NoneType
from typing import Any

from chalicelib.history import iso
from chalicelib.stays.campsites import Campsite, types_of


class MalformedPayload(Exception):
    """A stored payload cannot be read. The message names the fault's kind, never the payload."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A campsite with the nights to be told, and the link that leads to it."""

    campsite: Campsite
    nights: tuple[date, ...]
    link: str


@dataclass(frozen=True, slots=True)
class NotificationDTO:
    """One alert. It holds no credential and no address.

    `start_date` and `end_date` are the target's, end exclusive. `seen_at` is when the openings were found (None in
    payloads written before it was kept). `campsite_name` is set where the alert is of one campsite alone.
    """

    title: str
    message: str
    booking_url: str
    park_name: str
    campsite_name: str | None
    start_date: date
    end_date: date
    openings: tuple[Opening, ...]
    seen_at: datetime | None = None

    def nights(self) -> dict[str, frozenset[date]]:
        """The nights told, by campsite id."""
        return {opening.campsite.id: frozenset(opening.nights) for opening in self.openings}

    def retaining(self, nights: Mapping[str, AbstractSet[date]]) -> "NotificationDTO":
        """The same alert with these nights alone; `wording.reworded` then renews title and message."""
        kept = [
            replace(opening, nights=tuple(night for night in opening.nights if night in nights[opening.campsite.id]))
            for opening in self.openings
            if nights.get(opening.campsite.id)
        ]
        return replace(self, openings=tuple(kept))

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "title": self.title,
            "message": self.message,
            "booking_url": self.booking_url,
            "park_name": self.park_name,
            "campsite_name": self.campsite_name,
            "start_date": self.start_date.isoformat(),
            "end_date": self.end_date.isoformat(),
            "seen_at": iso(self.seen_at) if self.seen_at else None,
            "openings": [
                {
                    **opening.campsite.to_json(),
                    "nights": [night.isoformat() for night in opening.nights],
                    "booking_url": opening.link,
                }
                for opening in self.openings
            ],
        }

    @classmethod
    def from_json(cls, data: Any) -> "NotificationDTO":
        """The way back, from the earlier direct payloads too.

        Raises MalformedPayload.
        """
        try:
            openings = _openings(data) if "openings" in data else (_earlier_opening(data),)
            seen_at = data.get("seen_at")
            return cls(
                title=_as(data["title"], str),
                message=_as(data["message"], str),
                booking_url=_as(data["booking_url"], str),
                park_name=_as(data["park_name"], str),
                campsite_name=_as(data.get("campsite_name"), str, NoneType),
                start_date=date.fromisoformat(data["start_date"]),
                end_date=date.fromisoformat(data["end_date"]),
                openings=openings,
                seen_at=datetime.fromisoformat(seen_at) if seen_at else None,
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise MalformedPayload(type(error).__name__) from None


def _openings(data: Mapping[str, Any]) -> tuple[Opening, ...]:
    return tuple(
        Opening(_checked(Campsite.from_json(item)), _nights(item["nights"]), _as(item["booking_url"], str))
        for item in _as(data["openings"], list)
    )


def _earlier_opening(data: Mapping[str, Any]) -> Opening:
    """The one campsite of an earlier direct payload, whose facts stood in `metadata`."""
    metadata = data["metadata"]
    kind = metadata.get("campsite_type")
    campsite = Campsite(
        id=str(_as(metadata["campsite_id"], str, int)),
        name=data.get("campsite_name") or "",
        provider_type=kind,
        types=types_of(kind),
        electric=metadata.get("is_electric"),
        accessible=metadata.get("is_accessible"),
    )
    return Opening(_checked(campsite), _nights(metadata["available_dates"]), data["booking_url"])


def _nights(listed: Any) -> tuple[date, ...]:
    return tuple(date.fromisoformat(night) for night in _as(listed, list))


def _checked(campsite: Campsite) -> Campsite:
    """The same campsite, each of whose facts is of its kind: queries and filters rely on it. Raises TypeError."""
    for fact in (campsite.id, campsite.name, *campsite.types, *(item.name for item in campsite.equipment)):
        _as(fact, str)
    for fact in (campsite.loop, campsite.provider_type):
        _as(fact, str, NoneType)
    for fact in (campsite.electric, campsite.accessible):
        _as(fact, bool, NoneType)
    lengths = (item.max_length for item in campsite.equipment)
    for fact in (campsite.min_people, campsite.max_people, campsite.min_stay, *lengths):
        _as(fact, int, NoneType)
    return campsite


def _as(value: Any, *kinds: type) -> Any:
    """The value, when it is of one of these kinds. Raises TypeError."""
    if not isinstance(value, kinds):
        raise TypeError
    return value
