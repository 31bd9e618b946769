"""What a booking site's adapter is: it asks over HTTP and says what it understood, and knows no database."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum
from typing import Protocol

from chalicelib.stays.campsites import Campsite
from chalicelib.stays.openings import MonthAnswer


class CheckError(StrEnum):
    """Why a check failed: the whole list."""

    TIMEOUT = "timeout"
    TRANSPORT_ERROR = "transport_error"
    RATE_LIMITED = "rate_limited"
    BLOCKED = "blocked"  # 403, or a challenge page
    SERVER_ERROR = "server_error"
    CLIENT_ERROR = "client_error"
    NOT_FOUND = "not_found"
    NOT_JSON = "not_json"
    MALFORMED = "malformed"
    BLANK_ANSWER = "blank_answer"  # every month asked for says nothing


class ProviderError(Exception):
    """A booking site gave no usable answer. `retry_after` is what it asked for, if it did; `status` the HTTP code."""

    def __init__(
        self, category: CheckError, *, status: int | None = None, retry_after: timedelta | None = None
    ) -> None:
        super().__init__(category.value)
        self.category = category
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """Facts of a provider. Link templates take `{campground_id}` and `{campsite_id}`."""

    id: str
    name: str
    campground_link: str
    campsite_link: str
    concurrency: int


@dataclass(frozen=True, slots=True)
class CampsiteMetadata:
    """Campsites of one campground by id, with the campground's name where the answer told it."""

    campsites: Mapping[str, Campsite]
    campground_name: str | None = None
    oddities: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class CampgroundRecord:
    """One campground as its provider describes it. Coordinates in degrees, `time_zone` an IANA name."""

    id: str
    name: str
    time_zone: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    recreation_area_id: str | None = None


class MonthDocument:
    """A site's answer for one campground and month, read only when somebody needs to know what it says.

    `fingerprint` is the same for the same answer. Most are what they were a minute ago, and reading is most of a check.
    """

    def __init__(self, fingerprint: str, read: Callable[[], MonthAnswer]) -> None:
        self.fingerprint = fingerprint
        self._read = read
        self._answer: MonthAnswer | None = None

    def read(self) -> MonthAnswer:
        """What the answer says; understood once. Raises ProviderError for what makes no sense."""
        if self._answer is None:
            self._answer = self._read()
        return self._answer


class Provider(Protocol):
    """The three questions a booking site is asked. Whatever the site does, they raise ProviderError alone."""

    @property
    def info(self) -> ProviderInfo:
        """Who this is."""
        ...

    def availability(self, campground_id: str, month: date) -> MonthDocument:
        """Open nights of every campsite in the month that begins on `month`. One request."""
        ...

    def campsites(self, campground_id: str) -> CampsiteMetadata:
        """Metadata of the campground's campsites. One request."""
        ...

    def campground(self, campground_id: str) -> CampgroundRecord:
        """The campground's own record; raises ProviderError with `not_found` where there is none. One request."""
        ...
