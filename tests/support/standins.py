"""What tests give the use cases in place of production's: a clock moved by hand, a booking site and a push service."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import QueuePool

from chalicelib.channels.contract import ChannelInfo, Message, RecipientError
from chalicelib.channels.outcomes import DeliveryError, Outcome, OutcomeClass
from chalicelib.db.engine import Database
from chalicelib.db.vault import Vault, new_key
from chalicelib.deps import Deps
from chalicelib.providers.contract import (
    CampgroundRecord,
    CampsiteMetadata,
    CheckError,
    MonthDocument,
    ProviderError,
    ProviderInfo,
)
from chalicelib.settings import Settings
from chalicelib.stays.openings import MonthAnswer

NOW = datetime(2027, 7, 1, 12, 0, 0, 123456, tzinfo=UTC)
SITE = ProviderInfo(
    id="recreation_gov",
    name="Recreation.gov",
    campground_link="https://booking.example/campgrounds/{campground_id}",
    campsite_link="https://booking.example/campsites/{campsite_id}",
    concurrency=1,
)
SERVICE = ChannelInfo(kind="pushover", name="Pushover", concurrency=2)
ACCEPTED = Outcome(OutcomeClass.ACCEPTED, message_id="m-1")


@dataclass
class HandClock:
    """Shows what it is set to."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass
class StandInProvider:
    """A booking site that knows the campgrounds it is given; `trouble` is what it raises instead of an answer."""

    names: dict[str, str] = field(default_factory=lambda: {"232447": "Upper Pines", "232450": "Lower Pines"})
    trouble: CheckError | None = None
    asked: list[str] = field(default_factory=list[str])
    while_asked: Callable[[], None] = lambda: None
    info: ProviderInfo = SITE

    def availability(self, campground_id: str, month: date) -> MonthDocument:
        self._ask(campground_id)
        return MonthDocument("blank", lambda: MonthAnswer(month, {}, blank=True))

    def campsites(self, campground_id: str) -> CampsiteMetadata:
        self._ask(campground_id)
        return CampsiteMetadata({})

    def campground(self, campground_id: str) -> CampgroundRecord:
        self._ask(campground_id)
        if campground_id not in self.names:
            raise ProviderError(CheckError.NOT_FOUND, status=404)
        return CampgroundRecord(campground_id, self.names[campground_id])

    def _ask(self, campground_id: str) -> None:
        self.asked.append(campground_id)
        self.while_asked()
        if self.trouble:
            raise ProviderError(self.trouble)


@dataclass
class StandInChannel:
    """A push service whose recipients begin with `u`; it answers with `outcome`, or raises it."""

    configured: bool = True
    outcome: Outcome = ACCEPTED
    raises: bool = False
    sent: list[tuple[str, Message]] = field(default_factory=list[tuple[str, Message]])
    while_sending: Callable[[], None] = lambda: None
    info: ChannelInfo = SERVICE

    def check_recipient(self, recipient: str) -> str:
        if not recipient.startswith("u"):
            raise RecipientError("a user key begins with u")
        return recipient.strip()

    def send(self, recipient: str, message: Message, now: datetime) -> Outcome:
        self.while_sending()
        self.sent.append((recipient, message))
        if self.raises:
            raise DeliveryError(self.outcome)
        return self.outcome


@dataclass(frozen=True)
class World:
    """Dependencies together with the stand-ins behind them."""

    deps: Deps
    clock: HandClock
    provider: StandInProvider
    channel: StandInChannel


def make_world(database: Database, **settings: Any) -> World:
    """The use cases' dependencies over a real database; settings are defaults but for those given."""
    clock, provider, channel = HandClock(), StandInProvider(), StandInChannel()
    deps = Deps(
        settings=make_settings(settings),
        database=database,
        vault=Vault([new_key()]),
        providers={"recreation_gov": provider},
        channels={"pushover": channel},
        clock=clock,
    )
    return World(deps, clock, provider, channel)


def make_settings(given: Mapping[str, Any]) -> Settings:
    """Settings from these values and defaults, whatever the environment says."""
    return Settings.model_construct(**given)


def open_connections(database: Database) -> int:
    """How many connections are in use right now: none while a stand-in answers."""
    pool = database.engine.pool
    assert isinstance(pool, QueuePool)
    return pool.checkedout()
