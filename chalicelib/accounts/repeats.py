"""Idempotency-Key: a POST that comes again gets its first answer, and is not done twice."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import and_, or_, select

from chalicelib.db.tables import idempotency_keys
from chalicelib.deps import Deps
from chalicelib.errors import Invalid, KeyReused, StillRunning

KEPT = timedelta(hours=24)
LEASE = timedelta(seconds=60)
"""After which a first request that has not ended counts as lost: no request lasts that long behind the gateway."""

_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class Answered:
    """The first answer: its HTTP status, and its body without what is shown once."""

    status: int
    answer: Any


def begin(deps: Deps, user_id: UUID, key: str, request_hash: str) -> Answered | None:
    """None: go ahead, and then `finish` or `abandon`. Else the first answer to the same request.

    Raises Invalid for what is no key, KeyReused for another request with it, StillRunning.
    """
    if not _KEY.fullmatch(key):
        raise Invalid("Idempotency-Key", "a key is 1 to 255 printable ASCII characters")
    row, now = idempotency_keys.c, deps.clock()
    mine = and_(row.user_id == user_id, row.key == key)
    fresh = {"request_hash": request_hash, "begun_at": now, "status": None, "answer": None}
    lost = or_(row.begun_at <= now - KEPT, and_(row.status.is_(None), row.begun_at <= now - LEASE))
    with deps.database.transaction() as connection:
        taken = connection.execute(
            deps.database.upsert(idempotency_keys)
            .values(user_id=user_id, key=key, **fresh)
            .on_conflict_do_update(
                index_elements=[row.user_id, row.key],
                set_=fresh,
                where=or_(row.begun_at <= now - KEPT, and_(lost, row.request_hash == request_hash)),
            )
        ).rowcount
        found = connection.execute(select(idempotency_keys).where(mine)).one()
    if taken:
        return None
    if found.request_hash != request_hash:
        raise KeyReused
    if found.status is None:
        raise StillRunning
    return Answered(found.status, found.answer)


def finish(deps: Deps, user_id: UUID, key: str, answered: Answered) -> None:
    """Keep the answer for whoever asks again within 24 hours."""
    with deps.database.transaction() as connection:
        connection.execute(
            idempotency_keys.update()
            .where(idempotency_keys.c.user_id == user_id, idempotency_keys.c.key == key)
            .values(status=answered.status, answer=answered.answer)
        )


def abandon(deps: Deps, user_id: UUID, key: str) -> None:
    """Forget a request that came to nothing, so that it may be tried again."""
    row = idempotency_keys.c
    with deps.database.transaction() as connection:
        connection.execute(
            idempotency_keys.delete().where(row.user_id == user_id, row.key == key, row.status.is_(None))
        )
