"""How people are reached: their channels, with the recipient encrypted. Nothing here reaches out but `send_test`."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, RowMapping, Select, select

from chalicelib.accounts import users
from chalicelib.channels.contract import Channel, Message, RecipientError
from chalicelib.channels.outcomes import DeliveryError, Outcome
from chalicelib.db import audit
from chalicelib.db.audit import Asker, owner_of
from chalicelib.db.scan_versions import renewing_regained
from chalicelib.db.tables import notification_channels
from chalicelib.db.vault import Unreadable
from chalicelib.deps import Deps
from chalicelib.errors import Invalid, NotFound, Unavailable
from chalicelib.history import iso

ROTATED_AT_ONCE = 50  # channels a transaction


@dataclass(frozen=True, slots=True)
class ChannelView:
    """One channel as it may be shown: the recipient is not part of it."""

    id: UUID
    user_id: UUID
    kind: str
    enabled: bool
    disabled_reason: str | None
    has_recipient: bool
    created_at: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "user_id": str(self.user_id),
            "kind": self.kind,
            "enabled": self.enabled,
            "disabled_reason": self.disabled_reason,
            "has_recipient": self.has_recipient,
            "created_at": iso(self.created_at),
        }


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a rotation of keys did: how many are under the newest key now, and which no key opens."""

    rotated: int
    unreadable: tuple[UUID, ...]


def add(deps: Deps, user_id: UUID, kind: str, recipient: str, *, by: Asker) -> UUID:
    """Add a channel and keep its recipient encrypted; scans that could tell nobody until now begin anew.

    Raises NotFound, Invalid for a kind or a recipient that cannot be.
    """
    try:
        recipient = _adapter(deps, kind).check_recipient(recipient)
    except RecipientError as error:
        raise Invalid("recipient", str(error)) from None
    channel_id, now, credentials = uuid4(), deps.clock(), deps.vault.encrypt(recipient)
    with deps.database.transaction() as connection:
        users.lock(connection, user_id)
        with renewing_regained(connection, user_id):
            connection.execute(
                notification_channels.insert().values(
                    id=channel_id, user_id=user_id, kind=kind, credentials=credentials, created_at=now
                )
            )
        audit.note(connection, by, "channel.add", ("channel", channel_id), now, detail={"kind": kind})
    return channel_id


def of_user(deps: Deps, user_id: UUID) -> list[ChannelView]:
    """A person's channels, oldest first."""
    channel = notification_channels.c
    query = select(notification_channels).where(channel.user_id == user_id).order_by(channel.created_at, channel.id)
    with deps.database.reading() as connection:
        return [_view(row) for row in connection.execute(query).mappings()]


def remove(deps: Deps, channel_id: UUID, *, by: Asker) -> None:
    """Forget a channel and its recipient; scans that named it use the person's oldest enabled one. Raises NotFound."""
    with _changing(deps, channel_id, by, "channel.remove") as connection:
        connection.execute(notification_channels.delete().where(notification_channels.c.id == channel_id))


def enable(deps: Deps, channel_id: UUID, *, by: Asker) -> None:
    """Use a channel again that was switched off; its count of refusals begins at none. Raises NotFound."""
    with _changing(deps, channel_id, by, "channel.enable") as connection:
        connection.execute(
            notification_channels.update()
            .where(notification_channels.c.id == channel_id)
            .values(enabled=True, disabled_reason=None, refusals=0)
        )


def send_test(deps: Deps, channel_id: UUID, *, by: Asker) -> Outcome:
    """Send a real message now, whether the channel is enabled or not, and say what the upstream said.

    Raises NotFound, Unavailable where there is nothing to send with.
    """
    with deps.database.reading() as connection:
        row = _find(connection, channel_id, by)
    if deps.settings.pause_sending:
        raise Unavailable("sending is paused on this instance (SITEBELL_PAUSE_SENDING)")
    adapter = _adapter(deps, row["kind"])
    if not adapter.configured:
        raise Unavailable(f"this instance has no credentials of its own for {adapter.info.name}")
    if row["credentials"] is None:
        raise Unavailable("this channel has no recipient any more: add a new one")
    try:
        recipient = deps.vault.decrypt(row["credentials"])
    except Unreadable:
        raise Unavailable("none of SITEBELL_SECRET_KEYS opens this channel's recipient: add the channel anew") from None
    message = Message(title="Sitebell works", intro="This is a test. Alerts for your campsites will arrive like this.")
    try:
        return adapter.send(recipient, message, deps.clock())
    except DeliveryError as error:
        return error.outcome


def rotate_keys(deps: Deps) -> Rotation:
    """Encrypt every recipient anew with the newest key, a few channels a transaction.

    A recipient that changes meanwhile is not lost: it is read again and its change kept.
    """
    rotated, unreadable = 0, list[UUID]()
    channel = notification_channels.c
    stored = select(channel.id, channel.credentials).where(channel.credentials.is_not(None))
    batch = _read(deps, stored.order_by(channel.id).limit(ROTATED_AT_ONCE))
    while batch:
        last = max(batch)
        while batch:
            fresh: dict[UUID, tuple[str, str]] = {}
            for channel_id, credentials in batch.items():
                try:
                    fresh[channel_id] = credentials, deps.vault.rotate(credentials)
                except Unreadable:
                    unreadable.append(channel_id)
            lost = _swap(deps, fresh)
            rotated += len(fresh) - len(lost)
            batch = _read(deps, stored.where(channel.id.in_(lost))) if lost else {}
        batch = _read(deps, stored.where(channel.id > last).order_by(channel.id).limit(ROTATED_AT_ONCE))
    return Rotation(rotated, tuple(unreadable))


def _read(deps: Deps, stored: Select[UUID, str | None]) -> dict[UUID, str]:
    with deps.database.reading() as connection:
        return {row.id: row.credentials for row in connection.execute(stored)}


def _swap(deps: Deps, fresh: dict[UUID, tuple[str, str]]) -> list[UUID]:
    """Put new tokens where the old ones still stand; the ids of those where they do not."""
    channel = notification_channels.c
    with deps.database.transaction() as connection:
        return [
            channel_id
            for channel_id, (old, new) in fresh.items()
            if not connection.execute(
                notification_channels.update()
                .where(channel.id == channel_id, channel.credentials == old)
                .values(credentials=new)
            ).rowcount
        ]


@contextmanager
def _changing(deps: Deps, channel_id: UUID, by: Asker, action: str) -> Generator[Connection]:
    """A transaction around a change of one channel: owner locked, regained scans renewed, administrators audited."""
    with deps.database.transaction() as connection:
        user_id: UUID = _find(connection, channel_id, by)["user_id"]
        users.lock(connection, user_id)
        kind = _find(connection, channel_id, by)["kind"]  # again: it may have gone while the lock was waited for
        with renewing_regained(connection, user_id):
            yield connection
        audit.note(connection, by, action, ("channel", channel_id), deps.clock(), detail={"kind": kind})


def _find(connection: Connection, channel_id: UUID, by: Asker) -> RowMapping:
    query = select(notification_channels).where(notification_channels.c.id == channel_id)
    if (owner := owner_of(by)) is not None:
        query = query.where(notification_channels.c.user_id == owner)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotFound("channel", channel_id)
    return row


def _adapter(deps: Deps, kind: str) -> Channel:
    if kind not in deps.channels:
        raise Invalid("kind", f"there is no such kind of channel; there are: {', '.join(sorted(deps.channels))}")
    return deps.channels[kind]


def _view(row: RowMapping) -> ChannelView:
    return ChannelView(
        id=row["id"],
        user_id=row["user_id"],
        kind=row["kind"],
        enabled=row["enabled"],
        disabled_reason=row["disabled_reason"],
        has_recipient=row["credentials"] is not None,
        created_at=row["created_at"],
    )
