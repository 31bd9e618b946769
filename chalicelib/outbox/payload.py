"""The payload of an alert: what was seen, in a form that can be checked and counted again when it is told."""

from collections.abc import Mapping, Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date, datetime
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
                title=str(data["title"]),
                message=str(data["message"]),
                booking_url=str(data["booking_url"]),
                park_name=str(data["park_name"]),
                campsite_name=data.get("campsite_name"),
                start_date=date.fromisoformat(data["start_date"]),
                end_date=date.fromisoformat(data["end_date"]),
                openings=openings,
                seen_at=datetime.fromisoformat(seen_at) if seen_at else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MalformedPayload(type(error).__name__) from None


def _openings(data: Mapping[str, Any]) -> tuple[Opening, ...]:
    return tuple(
        Opening(
            Campsite.from_json(item),
            tuple(date.fromisoformat(night) for night in item["nights"]),
            str(item["booking_url"]),
        )
        for item in data["openings"]
    )


def _earlier_opening(data: Mapping[str, Any]) -> Opening:
    """The one campsite of an earlier direct payload, whose facts stood in `metadata`."""
    metadata = data["metadata"]
    kind = metadata.get("campsite_type")
    campsite = Campsite(
        id=str(metadata["campsite_id"]),
        name=str(data.get("campsite_name") or ""),
        provider_type=kind,
        types=types_of(kind),
        electric=metadata.get("is_electric"),
        accessible=metadata.get("is_accessible"),
    )
    nights = tuple(date.fromisoformat(night) for night in metadata["available_dates"])
    return Opening(campsite, nights, str(data["booking_url"]))
