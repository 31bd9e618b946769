"""The words of an alert: a title, a line a campsite, when it was seen, and where to book."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from chalicelib.channels.contract import Message
from chalicelib.outbox.payload import NotificationDTO, Opening
from chalicelib.providers.contract import ProviderInfo
from chalicelib.stays.nights import Run, runs, stay_words

STORED_LINES = 20
"""Lines of a payload's own message; the channels cut the full list for themselves."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an alert is about: a campground, the dates watched there, and the provider's links."""

    provider: ProviderInfo
    campground_id: str
    name: str
    start_date: date
    end_date: date

    @classmethod
    def of(cls, provider: ProviderInfo, campground_id: str, name: str | None, start: date, end: date) -> "Place":
        """A place whose campground may have no name yet."""
        return cls(provider, campground_id, name or f"Campground {campground_id}", start, end)

    def campground_link(self) -> str:
        """Leads to the campground."""
        return self.provider.campground_link.format(campground_id=self.campground_id)

    def campsite_link(self, campsite_id: str) -> str:
        """Leads to a campsite."""
        return self.provider.campsite_link.format(campground_id=self.campground_id, campsite_id=campsite_id)


def compose(place: Place, openings: Sequence[Opening], seen_at: datetime, *, summary: bool) -> NotificationDTO:
    """An alert of these openings. The link leads to the campsite, in a summary to the campground."""
    ordered = sorted(openings, key=lambda opening: (opening.nights[0], opening.campsite.name, opening.campsite.id))
    dto = NotificationDTO(
        title="",
        message="",
        booking_url=place.campground_link() if summary else ordered[0].link,
        park_name=place.name,
        campsite_name=None if summary else ordered[0].campsite.name,
        start_date=place.start_date,
        end_date=place.end_date,
        openings=tuple(ordered),
        seen_at=seen_at,
    )
    return reworded(dto)


def reworded(dto: NotificationDTO) -> NotificationDTO:
    """The same alert, its title and message telling the openings that it holds now."""
    lines = _lines(dto.openings)
    more = [f"+{len(lines) - STORED_LINES} more"] if len(lines) > STORED_LINES else []
    return replace(dto, title=_title(dto), message="\n".join(lines[:STORED_LINES] + more))


def message_of(dto: NotificationDTO) -> Message:
    """The alert as a channel is given it."""
    return Message(
        title=dto.title,
        items=tuple(_lines(dto.openings)),
        note=f"Seen open {dto.seen_at:%a} {dto.seen_at.day} {dto.seen_at:%b %H:%M} UTC." if dto.seen_at else "",
        url=dto.booking_url,
        url_title=f"Book at {dto.park_name}" if dto.campsite_name is None else f"Book {_site(dto.campsite_name)}",
    )


def _title(dto: NotificationDTO) -> str:
    if dto.campsite_name is not None:
        return f"{dto.park_name}: {_site(dto.campsite_name)} is open"
    count = len(dto.openings)
    return f"{dto.park_name}: {count} campsite{'s are' if count > 1 else ' is'} open"


def _lines(openings: Sequence[Opening]) -> list[str]:
    return [_line(opening) for opening in openings]


def _line(opening: Opening) -> str:
    campsite = opening.campsite
    where = f"Site {campsite.name or campsite.id}{f' ({campsite.loop})' if campsite.loop else ''}"
    return f"{where}: {'; '.join(_stay(run, campsite.min_stay or 1) for run in runs(opening.nights))}"


def _stay(run: Run, min_stay: int) -> str:
    """A run in words. One that is too short to be booked is told all the same, since the night before or after may yet
    open, and the site's word may be out of date.
    """
    return f"{stay_words(run)} (min. stay {min_stay} nights)" if len(run) < min_stay else stay_words(run)


def _site(name: str) -> str:
    return f"site {name}"
