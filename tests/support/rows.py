"""Rows that a state implies, made as the use cases would."""

from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import select

from chalicelib.accounts import channels, users
from chalicelib.db.audit import OPERATOR
from chalicelib.db.tables import admin_audit_events, user_scans
from chalicelib.deps import Deps
from chalicelib.scans import changes
from chalicelib.scans.request import ScanRequest
from chalicelib.stays.filters import Filters

JULY = (date(2027, 7, 10), date(2027, 7, 20))


def add_user(deps: Deps, email: str = "ann@example.org") -> UUID:
    return users.add(deps, email).id


def add_channel(deps: Deps, user_id: UUID, recipient: str = "u-ann") -> UUID:
    return channels.add(deps, user_id, "pushover", recipient, by=user_id)


def make_request(
    *, campground: str = "232447", dates: tuple[date, date] = JULY, mode: str = "summary", **filters: Any
) -> ScanRequest:
    return ScanRequest("recreation_gov", campground, *dates, Filters(**filters), mode)


def add_scan(deps: Deps, user_id: UUID, request: ScanRequest | None = None) -> UUID:
    return changes.add(deps, user_id, request or make_request(), by=OPERATOR).id


def version_of(deps: Deps, scan_id: UUID) -> int:
    with deps.database.reading() as connection:
        return connection.execute(select(user_scans.c.version).where(user_scans.c.id == scan_id)).scalar_one()


def audited(deps: Deps) -> list[tuple[str, str]]:
    """Actions with their subjects' ids, in no order that means anything."""
    event = admin_audit_events.c
    with deps.database.reading() as connection:
        return sorted(
            (row.action, row.subject_id) for row in connection.execute(select(event.action, event.subject_id))
        )
