"""Outbox rows with all that they refer to, written straight into the tables: what detect would have left behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import RowMapping, Table, func, select, update

from chalicelib.channels.contract import Channel
from chalicelib.db.engine import Database
from chalicelib.db.scan_rows import result_columns
from chalicelib.db.tables import (
    alert_history,
    campgrounds,
    channel_states,
    notification_channels,
    notification_outbox,
    providers,
    scan_results,
    unique_targets,
    user_scans,
    users,
)
from chalicelib.deps import Deps
from chalicelib.history import RunResult
from chalicelib.outbox import drain
from chalicelib.outbox.acknowledge import acknowledge
from chalicelib.outbox.claim import Claim, claim_next
from chalicelib.outbox.payload import Opening
from chalicelib.outbox.states import SkipReason, Status
from chalicelib.outbox.wording import Place, compose
from chalicelib.stays.campsites import Campsite
from chalicelib.stays.openings import Result
from tests.support.standins import SITE, HandClock, StandInChannel, make_world

KEY = "u" * 30
"""A recipient's key."""
START, END = date(2027, 7, 1), date(2027, 8, 1)


def july(*days: int) -> list[date]:
    return [date(2027, 7, day) for day in days]


def site(campsite_id: str = "101", **known: Any) -> Campsite:
    """A campsite that passes every filter a test asks for, but for what is said otherwise."""
    facts: dict[str, Any] = {
        "name": campsite_id[-3:].zfill(3),
        "loop": "A",
        "provider_type": "STANDARD ELECTRIC",
        "types": frozenset({"tent", "rv"}),
        "electric": True,
        "accessible": True,
        "min_people": 1,
        "max_people": 6,
    }
    return Campsite(campsite_id, **(facts | known))


@dataclass(frozen=True)
class Camper:
    """A person, a channel, a scan: ids."""

    user_id: UUID
    channel_id: UUID
    scan_id: UUID


@dataclass
class Camp:
    """One campground over one target; rows are added by hand, then the use cases are called."""

    deps: Deps
    clock: HandClock
    target_id: UUID
    channel: StandInChannel = field(default_factory=StandInChannel)
    """The stand-in that `deps` holds, where it holds one."""

    # --- what is there -----------------------------------------------------------------------------------

    def target(self, start: date = START, end: date = END, **columns: Any) -> UUID:
        target_id = uuid4()
        here = {"provider": "recreation_gov", "campground_id": "100", "start_date": start, "end_date": end}
        self.insert(
            unique_targets,
            {"id": target_id, **here, "created_at": self.clock(), "last_checked_at": self.clock(), **columns},
        )
        return target_id

    def results(self, nights: Mapping[str, Sequence[date]], target_id: UUID | None = None, **columns: Any) -> None:
        """What the last check found open; replaces what it had found before."""
        with self.deps.database.transaction() as connection:
            connection.execute(scan_results.delete().where(scan_results.c.target_id == (target_id or self.target_id)))
            for site_id, own in nights.items():
                result = Result(site(site_id), dict.fromkeys(own, self.clock()))
                row = {"target_id": target_id or self.target_id, **result_columns(result), **columns}
                connection.execute(scan_results.insert(), row)

    def camper(self, email: str = "ann@example.org", key: str = KEY, **scan: Any) -> Camper:
        user_id, channel_id = uuid4(), uuid4()
        self.insert(users, {"id": user_id, "email": email, "created_at": self.clock()})
        self.insert(
            notification_channels,
            {
                "id": channel_id,
                "user_id": user_id,
                "kind": "pushover",
                "credentials": self.deps.vault.encrypt(key),
                "created_at": self.clock(),
            },
        )
        return Camper(user_id, channel_id, self.scan(user_id, **scan))

    def scan(self, user_id: UUID, **columns: Any) -> UUID:
        scan_id = uuid4()
        wishes = {"preferred_types": [], "loops_wanted": [], "loops_unwanted": [], "campsites_wanted": []}
        wishes |= {"campsites_unwanted": [], "arrival_weekdays": []}
        self.insert(
            user_scans,
            {
                "id": scan_id,
                "user_id": user_id,
                "target_id": self.target_id,
                "created_at": self.clock(),
                **wishes,
                **columns,
            },
        )
        return scan_id

    def alert(self, camper: Camper, nights: Mapping[str, Sequence[date]] | None = None, **columns: Any) -> UUID:
        """A due intent; its `payload` tells these nights, which are one night of one site unless said."""
        told = {"101": july(10)} if nights is None else nights
        row_id = uuid4()
        row = {
            "id": row_id,
            "detection_id": uuid4(),
            "user_id": camper.user_id,
            "scan_id": camper.scan_id,
            "target_id": self.target_id,
            "delivery_key": "summary",
            "payload": self.payload(told),
            "next_attempt_at": self.clock(),
            "created_at": self.clock(),
        }
        self.insert(notification_outbox, row | columns)
        return row_id

    def payload(self, nights: Mapping[str, Sequence[date]], *sites: Campsite, summary: bool = True) -> dict[str, Any]:
        known = {known.id: known for known in sites}
        place = Place.of(SITE, "100", "Upper Pines", START, END)
        openings = [
            Opening(known.get(site_id, site(site_id)), tuple(own), place.campsite_link(site_id))
            for site_id, own in nights.items()
        ]
        return compose(place, openings, self.clock(), summary=summary).to_json()

    def true_alert(self, email: str = "ann@example.org", key: str = KEY, **columns: Any) -> UUID:
        """A due intent of a person of its own that is true: the results hold its nights."""
        camper = self.camper(email, key)
        return self.alert(camper, **columns)

    def insert(self, table: Table, row: Mapping[str, Any]) -> None:
        with self.deps.database.transaction() as connection:
            connection.execute(table.insert(), dict(row))

    def change(self, table: Table, **values: Any) -> None:
        """Set columns of all of a table's rows."""
        with self.deps.database.transaction() as connection:
            connection.execute(update(table).values(**values))

    def change_row(self, table: Table, id: UUID, **values: Any) -> None:
        with self.deps.database.transaction() as connection:
            connection.execute(update(table).where(table.c.id == id).values(**values))

    def delete(self, table: Table, id: UUID) -> None:
        with self.deps.database.transaction() as connection:
            connection.execute(table.delete().where(table.c.id == id))

    def sending(self, camper: Camper, **columns: Any) -> UUID:
        """A row whose one attempt is under way, unless said otherwise."""
        state: dict[str, Any] = {
            "status": "sending",
            "attempt_count": 1,
            "claim_token": uuid4(),
            "channel_kind": "pushover",
            "next_attempt_at": self.clock() + timedelta(seconds=40),
            "told": {"101": ["2027-07-10"]},
        }
        return self.alert(camper, **(state | columns))

    # --- what is done ------------------------------------------------------------------------------------

    def with_settings(self, **values: Any) -> "Camp":
        chosen = self.deps.settings.model_copy(update=values)
        return replace(self, deps=replace(self.deps, settings=chosen))

    def with_channels(self, **channels: Channel) -> "Camp":
        return replace(self, deps=replace(self.deps, channels=channels))

    def claim(self) -> Claim | SkipReason | None:
        return claim_next(self.deps, self.clock(), set())

    def claimed(self) -> Claim:
        claim = self.claim()
        assert isinstance(claim, Claim)
        return claim

    def acknowledge(self, claim: Claim, outcome: Any) -> Status | None:
        return acknowledge(self.deps, claim, outcome)

    def drain(self, seconds: float = 120, workers: int = 1) -> RunResult:
        return drain.run(self.deps, self.clock() + timedelta(seconds=seconds), workers=workers)

    # --- what came of it ---------------------------------------------------------------------------------

    def row(self, row_id: UUID | None = None) -> RowMapping:
        """One outbox row: the only one, or the one with this id."""
        statement = select(notification_outbox)
        if row_id is not None:
            statement = statement.where(notification_outbox.c.id == row_id)
        return self._all(statement)[0]

    def status(self, row_id: UUID | None = None) -> str:
        return self.row(row_id)["status"]

    def ended(self, row_id: UUID | None = None) -> tuple[str, str | None]:
        row = self.row(row_id)
        return row["status"], row["error_category"]

    def rows(self) -> list[RowMapping]:
        return self._all(select(notification_outbox).order_by(notification_outbox.c.created_at))

    def story(self) -> RowMapping:
        """The only row of the alert history."""
        (story,) = self._all(select(alert_history))
        return story

    def told(self) -> dict[str, list[str]]:
        return self.story()["nights"]

    def kind_state(self) -> RowMapping:
        (state,) = self._all(select(channel_states))
        return state

    def channel_row(self, channel_id: UUID) -> RowMapping:
        return self._all(select(notification_channels).where(notification_channels.c.id == channel_id))[0]

    def count(self, table: Table) -> int:
        with self.deps.database.reading() as connection:
            return connection.execute(select(func.count()).select_from(table)).scalar_one()

    def _all(self, statement: Any) -> list[RowMapping]:
        with self.deps.database.reading() as connection:
            return list(connection.execute(statement).mappings())


def camp_of(deps: Deps, clock: HandClock, channel: StandInChannel | None = None) -> Camp:
    """A campground, "100", of which site "101" is open on 10 July, over a database that holds nothing yet."""
    camp = Camp(deps, clock, uuid4(), channel or StandInChannel())
    camp.insert(providers, {"id": "recreation_gov", "name": "Recreation.gov"})
    camp.insert(campgrounds, {"provider": "recreation_gov", "campground_id": "100", "updated_at": clock()})
    camp.target_id = camp.target()
    camp.results({"101": july(10)})
    return camp


def stand_in_camp(database: Database, **settings: Any) -> Camp:
    world = make_world(database, **settings)
    return camp_of(replace(world.deps, pause=lambda _: None), world.clock, world.channel)


def later(moment: datetime, **by: float) -> datetime:
    return moment + timedelta(**by)
