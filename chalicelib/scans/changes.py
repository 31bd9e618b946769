"""Scans added, changed, paused, resumed and removed. The owner's row is locked first, so two at once agree."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from chalicelib.catalog.lookup import find_or_look_up
from chalicelib.db import audit, scan_versions
from chalicelib.db.audit import Asker, owner_of
from chalicelib.db.scan_rows import filter_columns, filters_of
from chalicelib.db.tables import notification_channels, unique_targets, user_scans, users
from chalicelib.deps import Deps
from chalicelib.errors import DuplicateScan, Invalid, NotFound, QuotaReached
from chalicelib.scans.request import ScanRequest, checked, same_wishes


@dataclass(frozen=True, slots=True)
class Added:
    """A new scan, and the target that it shares with everyone who watches the same."""

    id: UUID
    target_id: UUID


def add(deps: Deps, user_id: UUID, request: ScanRequest, *, by: Asker) -> Added:
    """Make a scan; everything open is news to it at its next check.

    1. Check what is asked for.
    2. Look the campground up, where the catalogue lacks it; before the transaction, since it may ask the booking site.
    3. Lock the owner; find or make the target; refuse a second scan of the same, and one too many; insert.

    Raises Invalid, NotFound for the user, DuplicateScan, QuotaReached, and the catalogue's CampgroundNotFound.
    """
    request, now = checked(deps, request), deps.clock()
    _look_up(deps, request, now)
    scan_id = uuid4()
    with deps.database.transaction() as connection:
        _lock_owner(connection, user_id)
        _check_channel(connection, user_id, request.channel_id)
        target_id = _target(deps, connection, request, now)
        _check_duplicate(connection, user_id, target_id, request)
        _check_quota(connection, user_id, deps.settings.max_scans)
        connection.execute(
            user_scans.insert().values(id=scan_id, user_id=user_id, created_at=now, **_columns(target_id, request))
        )
        audit.note(connection, by, "scan.add", ("scan", scan_id), now, detail={"user_id": str(user_id)})
    return Added(scan_id, target_id)


def change(deps: Deps, scan_id: UUID, edit: Callable[[ScanRequest], ScanRequest], *, by: Asker) -> UUID:
    """Make a scan ask for something else; gives the id of its target. Other wishes or another target renew it.

    `edit` turns what the scan asks for into what it shall; should the scan change meanwhile, it is called again.
    Raises as `add` does, NotFound for the scan.
    """
    with deps.database.reading() as connection:
        before = _request_of(_find(connection, scan_id, by))
    while True:
        request, now = checked(deps, edit(before)), deps.clock()
        _look_up(deps, request, now)
        with deps.database.transaction() as connection:
            user_id: UUID = _find(connection, scan_id, by)["user_id"]
            _lock_owner(connection, user_id)
            row = _find(connection, scan_id, by)  # again, now that nobody else can change it
            if (found := _request_of(row)) != before:
                before = found
                continue
            _check_channel(connection, user_id, request.channel_id)
            target_id = _target(deps, connection, request, now)
            _check_duplicate(connection, user_id, target_id, request, scan_id)
            with scan_versions.renewing_regained(connection, user_id):
                values = _columns(target_id, request)
                if target_id != row["target_id"] or not same_wishes(request.filters, before.filters):
                    values["version"] = user_scans.c.version + 1
                connection.execute(user_scans.update().where(user_scans.c.id == scan_id).values(**values))
            audit.note(connection, by, "scan.change", ("scan", scan_id), now)
            return target_id


def pause(deps: Deps, scan_id: UUID, *, by: Asker) -> None:
    """Neither check for this scan nor tell of it. A paused scan stays as it is. Raises NotFound."""
    _switch(deps, scan_id, by, active=False)


def resume(deps: Deps, scan_id: UUID, *, by: Asker) -> None:
    """Go on with a paused scan; what is open is news to it. One that is active stays as it is. Raises NotFound."""
    _switch(deps, scan_id, by, active=True)


def remove(deps: Deps, scan_id: UUID, *, by: Asker) -> None:
    """Forget a scan; what was to be told of it is skipped by the next drain. Raises NotFound."""
    with deps.database.transaction() as connection:
        if not connection.execute(user_scans.delete().where(*_one(scan_id, by))).rowcount:
            raise NotFound("scan", scan_id)
        audit.note(connection, by, "scan.remove", ("scan", scan_id), deps.clock())


def _switch(deps: Deps, scan_id: UUID, by: Asker, *, active: bool) -> None:
    with deps.database.transaction() as connection:
        is_active = select(user_scans.c.is_active).where(*_one(scan_id, by)).with_for_update(key_share=True)
        row = connection.execute(is_active).first()
        if row is None:
            raise NotFound("scan", scan_id)
        if row.is_active == active:
            return
        values: dict[str, Any] = {"is_active": active}
        if active:
            values["version"] = user_scans.c.version + 1
        connection.execute(user_scans.update().where(user_scans.c.id == scan_id).values(**values))
        action = "scan.resume" if active else "scan.pause"
        audit.note(connection, by, action, ("scan", scan_id), deps.clock())


def _look_up(deps: Deps, request: ScanRequest, now: datetime) -> None:
    find_or_look_up(deps.database, deps.providers[request.provider], request.campground_id, now)


def _lock_owner(connection: Connection, user_id: UUID) -> None:
    if (
        connection.execute(select(users.c.id).where(users.c.id == user_id).with_for_update(key_share=True)).first()
        is None
    ):
        raise NotFound("user", user_id)


def _check_channel(connection: Connection, user_id: UUID, channel_id: UUID | None) -> None:
    channel = notification_channels.c
    owned = select(channel.id).where(channel.id == channel_id, channel.user_id == user_id)
    if channel_id is not None and connection.execute(owned).first() is None:
        raise Invalid("channel_id", f"this person has no channel {channel_id}")


def _target(deps: Deps, connection: Connection, request: ScanRequest, now: datetime) -> UUID:
    """The one target for what is to be watched, made where nobody watched it yet; safe for two at once."""
    target = unique_targets.c
    wanted = {
        "provider": request.provider,
        "campground_id": request.campground_id,
        "start_date": request.start_date,
        "end_date": request.end_date,
    }
    connection.execute(
        deps.database.upsert(unique_targets)
        .values(id=uuid4(), created_at=now, **wanted)
        .on_conflict_do_nothing(index_elements=list(wanted))
    )
    return connection.execute(
        select(target.id).where(*(target[name] == value for name, value in wanted.items()))
    ).scalar_one()


def _check_duplicate(
    connection: Connection, user_id: UUID, target_id: UUID, request: ScanRequest, itself: UUID | None = None
) -> None:
    scan = user_scans.c
    query = select(user_scans).where(scan.user_id == user_id, scan.target_id == target_id, scan.mode == request.mode)
    for row in connection.execute(query).mappings():
        if row["id"] != itself and same_wishes(filters_of(row), request.filters):
            raise DuplicateScan(row["id"])


def _check_quota(connection: Connection, user_id: UUID, most: int) -> None:
    """Paused scans and those whose dates are over count too: nobody but their owner can tell what is still wanted."""
    count = select(func.count()).where(user_scans.c.user_id == user_id)
    if most and connection.execute(count).scalar_one() >= most:
        alerts = "1 alert" if most == 1 else f"{most} alerts"
        raise QuotaReached(f"this instance allows {alerts} a person: remove one first")


def _find(connection: Connection, scan_id: UUID, by: Asker) -> RowMapping:
    """A scan with its target's columns. Raises NotFound, for another person's scan too."""
    target = unique_targets.c
    query = (
        select(user_scans, target.provider, target.campground_id, target.start_date, target.end_date)
        .join_from(user_scans, unique_targets, user_scans.c.target_id == target.id)
        .where(*_one(scan_id, by))
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotFound("scan", scan_id)
    return row


def _one(scan_id: UUID, by: Asker) -> list[ColumnElement[bool]]:
    """Conditions for one scan, and for its being the asker's where a person asks."""
    owner = owner_of(by)
    mine = [] if owner is None else [user_scans.c.user_id == owner]
    return [user_scans.c.id == scan_id, *mine]


def _request_of(row: RowMapping) -> ScanRequest:
    return ScanRequest(
        provider=row["provider"],
        campground_id=row["campground_id"],
        start_date=row["start_date"],
        end_date=row["end_date"],
        filters=filters_of(row),
        mode=row["mode"],
        channel_id=row["channel_id"],
    )


def _columns(target_id: UUID, request: ScanRequest) -> dict[str, Any]:
    return {
        "target_id": target_id,
        "mode": request.mode,
        "channel_id": request.channel_id,
        **filter_columns(request.filters),
    }
