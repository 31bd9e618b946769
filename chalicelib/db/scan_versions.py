"""A scan's version: one more, and everything open is news to the scan at its next check.

New filters, another target and a resumed scan are the scans' own business. Here is what happens around them: permission
regained, and the first working channel.
"""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, false, func, select

from chalicelib.db.tables import notification_channels, user_scans


def renew(connection: Connection, scan_ids: Collection[UUID]) -> None:
    """Raise the version of these scans. The caller has locked them, or their owner's row and `lock_scans`."""
    if scan_ids:
        chosen = user_scans.c.id.in_(sorted(scan_ids))
        connection.execute(user_scans.update().where(chosen).values(version=user_scans.c.version + 1))


def lock_scans(connection: Connection, user_id: UUID) -> list[UUID]:
    """Lock a person's scans in the order of their ids, as everyone who locks several must."""
    ids = select(user_scans.c.id).where(user_scans.c.user_id == user_id).order_by(user_scans.c.id)
    return list(connection.execute(ids.with_for_update(key_share=True)).scalars())


@contextmanager
def renewing_regained(connection: Connection, user_id: UUID) -> Generator[None]:
    """Around a change of a person's channels: scans that could tell nobody before and can now are renewed."""
    scan_ids = lock_scans(connection, user_id)
    unreachable = select(user_scans.c.id).where(user_scans.c.user_id == user_id, ~reachable())
    before = set(connection.execute(unreachable).scalars())
    yield
    after = set(connection.execute(unreachable).scalars())
    renew(connection, [scan_id for scan_id in scan_ids if scan_id in before - after])


def reachable() -> ColumnElement[bool]:
    """SQL, for a row of user_scans: its channel (its own, else the owner's oldest enabled one) works."""
    channel = notification_channels.c
    works = and_(channel.enabled, channel.credentials.is_not(None))
    own = select(works).where(channel.id == user_scans.c.channel_id).correlate(user_scans)
    oldest = (
        select(works)
        .where(channel.user_id == user_scans.c.user_id, channel.enabled, user_scans.c.channel_id.is_(None))
        .order_by(channel.created_at, channel.id)
        .limit(1)
        .correlate(user_scans)
    )
    return func.coalesce(own.scalar_subquery(), oldest.scalar_subquery(), false())
