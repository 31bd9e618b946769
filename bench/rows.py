"""An outbox full of due alerts, each of a scan of its own, and everything they refer to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import insert, text

from chalicelib.db.engine import Database
from chalicelib.db.scan_rows import result_columns
from chalicelib.db.tables import (
    alert_history,
    campgrounds,
    notification_channels,
    notification_outbox,
    provider_states,
    providers,
    scan_results,
    unique_targets,
    user_scans,
    users,
)
from chalicelib.db.vault import Vault
from chalicelib.history import utc_now
from chalicelib.outbox.enqueue import Intent, enqueue
from chalicelib.outbox.payload import Opening
from chalicelib.outbox.wording import Place, compose
from chalicelib.stays.campsites import Campsite, types_of
from chalicelib.stays.openings import Result
from tests.support.standins import SITE

SCANS_A_TARGET = 10
SITES = 20
"""Campsites with open nights that a target's results hold."""

TOLD = 3
"""Campsites that an alert tells of, with two nights each."""

KIND = "STANDARD NONELECTRIC"
TABLES = (
    alert_history,
    notification_outbox,
    user_scans,
    scan_results,
    unique_targets,
    notification_channels,
    users,
    campgrounds,
    provider_states,
    providers,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` alerts, all due."""

    database: Database
    count: int
    intents: Sequence[Intent]

    def put_back(self) -> None:
        """Make the outbox what it was at first: the same rows, all pending."""
        with self.database.transaction() as connection:
            for table in (alert_history, notification_outbox):
                postgresql = self.database.dialect == "postgresql"  # which would keep what was deleted
                connection.execute(text(f"{'TRUNCATE' if postgresql else 'DELETE FROM'} {table.name}"))
            enqueue(connection, self.intents, utc_now() - timedelta(minutes=1))
            connection.execute(text("ANALYZE"))


def empty(database: Database) -> None:
    """Take every row away that these benchmarks write."""
    with database.transaction() as connection:
        for table in TABLES:
            connection.execute(table.delete())


def fill(database: Database, vault: Vault, count: int) -> Rows:
    """Write so many people, each with a channel, a scan and a due alert; ten of them share a target."""
    empty(database)
    now = utc_now()
    first = now.date() + timedelta(days=20)
    people = [uuid4() for _ in range(count)]
    targets = [uuid4() for _ in range((count + SCANS_A_TARGET - 1) // SCANS_A_TARGET)]
    scans = [(uuid4(), person, targets[index // SCANS_A_TARGET]) for index, person in enumerate(people)]
    recipient = vault.encrypt("u" * 30)
    with database.transaction() as connection:
        connection.execute(insert(providers), [{"id": SITE.id, "name": SITE.name}])
        connection.execute(
            insert(campgrounds),
            [
                {"provider": SITE.id, "campground_id": str(100 + index), "name": "Upper Pines", "updated_at": now}
                for index in range(len(targets))
            ],
        )
        connection.execute(
            insert(users),
            [
                {"id": person, "email": f"{number}@example.org", "created_at": now}
                for number, person in enumerate(people)
            ],
        )
        connection.execute(
            insert(notification_channels),
            [
                {"id": uuid4(), "user_id": person, "kind": "pushover", "credentials": recipient, "created_at": now}
                for person in people
            ],
        )
        connection.execute(
            insert(unique_targets),
            [
                {
                    "id": target,
                    "provider": SITE.id,
                    "campground_id": str(100 + index),
                    "start_date": first,
                    "end_date": first + timedelta(days=30),
                    "created_at": now,
                    "last_checked_at": now,
                }
                for index, target in enumerate(targets)
            ],
        )
        connection.execute(
            insert(user_scans),
            [
                {"id": scan, "user_id": person, "target_id": target, "told_version": 1, "created_at": now}
                for scan, person, target in scans
            ],
        )
        connection.execute(
            insert(scan_results),
            [
                {"target_id": target, **result_columns(Result(site, dict.fromkeys(_nights(first), now)))}
                for target in targets
                for site in _sites()
            ],
        )
    return Rows(database, count, [_intent(*scan, first, now) for scan in scans])


def _sites() -> list[Campsite]:
    return [Campsite(str(900 + number), f"{number:03d}", "Loop A", KIND, types_of(KIND)) for number in range(SITES)]


def _nights(first: date) -> tuple[date, date]:
    return first + timedelta(days=5), first + timedelta(days=6)


def _intent(scan: UUID, person: UUID, target: UUID, first: date, now: datetime) -> Intent:
    place = Place.of(SITE, "100", "Upper Pines", first, first + timedelta(days=30))
    told = [Opening(site, _nights(first), place.campsite_link(site.id)) for site in _sites()[:TOLD]]
    return Intent(uuid4(), person, scan, target, "summary", compose(place, told, now, summary=True))
