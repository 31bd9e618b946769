"""API tokens: shown once, stored as a hash, revocable. What a hash does not open is no token."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import RowMapping, func, or_, select

from chalicelib.accounts import users
from chalicelib.accounts.users import User
from chalicelib.db import audit
from chalicelib.db.audit import Administrator, Asker, owner_of
from chalicelib.db.tables import api_tokens, users as users_table
from chalicelib.deps import Deps
from chalicelib.errors import Forbidden, Invalid, NotFound, QuotaReached
from chalicelib.history import iso
from chalicelib.stays.names import plain_text

KINDS = ("read_write", "read_only", "service")
PREFIX = "sb_"
"""How every token begins, so that people and secret scanners know one when they see it."""

MAX_NAME = 100
MAX_LIVE = 20  # tokens a person
USE_KEPT = timedelta(minutes=1)  # how exactly the last use is known: each note of it is a write


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token as it may be shown: without itself. `last_used_at` is right to the minute."""

    id: UUID
    user_id: UUID
    name: str
    kind: str
    created_at: datetime
    last_used_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "name": self.name,
            "kind": self.kind,
            "created_at": iso(self.created_at),
            "last_used_at": iso(self.last_used_at) if self.last_used_at else None,
        }


@dataclass(frozen=True, slots=True)
class Made:
    """A new token, with the one sight of its secret."""

    token: TokenView
    secret: str


def make(deps: Deps, user_id: UUID, *, name: str = "", kind: str = "read_write", by: Asker) -> Made:
    """Make a token for a person; only an administrator makes a service one.

    Raises Invalid, NotFound, Forbidden, and QuotaReached for more than twenty.
    """
    if kind not in KINDS:
        raise Invalid("kind", f"a token's kind is one of: {', '.join(KINDS)}")
    if kind == "service" and not isinstance(by, Administrator):
        raise Forbidden("only an administrator makes service tokens")
    name = " ".join(plain_text(name, MAX_NAME + 1).split()) or "unnamed"
    if len(name) > MAX_NAME:
        raise Invalid("name", f"a name has at most {MAX_NAME} characters")
    secret, now, token = PREFIX + token_urlsafe(32), deps.clock(), api_tokens.c
    view = TokenView(uuid4(), user_id, name, kind, now, None)
    live = select(func.count()).where(token.user_id == user_id, token.revoked_at.is_(None))
    with deps.database.transaction() as connection:
        users.lock(connection, user_id)
        if connection.execute(live).scalar_one() >= MAX_LIVE:
            raise QuotaReached(f"a person may have {MAX_LIVE} tokens: revoke one that is no longer used")
        connection.execute(
            api_tokens.insert().values(
                id=view.id, user_id=user_id, name=name, kind=kind, token_hash=_hash(secret), created_at=now
            )
        )
        audit.note(connection, by, "token.make", ("token", view.id), now, detail={"kind": kind})
    return Made(view, secret)


def of_user(deps: Deps, user_id: UUID) -> Sequence[TokenView]:
    """A person's tokens that open something, newest first."""
    token = api_tokens.c
    query = select(api_tokens).where(token.user_id == user_id, token.revoked_at.is_(None))
    with deps.database.reading() as connection:
        rows = connection.execute(query.order_by(token.created_at.desc(), token.id)).mappings()
        return [_view(row) for row in rows]


def revoke(deps: Deps, token_id: UUID, *, by: Asker) -> None:
    """End a token for good, from its next use on. Raises NotFound, for another person's and one revoked before too."""
    token, now = api_tokens.c, deps.clock()
    one = [token.id == token_id, token.revoked_at.is_(None)]
    if (owner := owner_of(by)) is not None:
        one.append(token.user_id == owner)
    with deps.database.transaction() as connection:
        if not connection.execute(api_tokens.update().where(*one).values(revoked_at=now)).rowcount:
            raise NotFound("token", token_id)
        audit.note(connection, by, "token.revoke", ("token", token_id), now)


def use(deps: Deps, secret: str) -> tuple[User, TokenView] | None:
    """Whom a token opens for, and which it is; None for what is no token, or none any more."""
    token, now = api_tokens.c, deps.clock()
    live = select(api_tokens).where(token.token_hash == _hash(secret), token.revoked_at.is_(None))
    with deps.database.reading() as connection:
        row = connection.execute(live).mappings().first()
        if row is None:
            return None
        person = connection.execute(select(users_table).where(users_table.c.id == row["user_id"])).mappings().one()
    if row["last_used_at"] is None or now - row["last_used_at"] >= USE_KEPT:
        stale = or_(token.last_used_at.is_(None), token.last_used_at <= now - USE_KEPT)
        with deps.database.transaction() as connection:
            connection.execute(api_tokens.update().where(token.id == row["id"], stale).values(last_used_at=now))
    return users.of_row(person), _view(row)


def _hash(secret: str) -> str:
    """Plain SHA-256 will do: 256 random bits cannot be guessed, however fast the hash is."""
    return sha256(secret.encode(errors="replace")).hexdigest()


def _view(row: RowMapping) -> TokenView:
    return TokenView(
        id=row["id"],
        user_id=row["user_id"],
        name=row["name"],
        kind=row["kind"],
        created_at=row["created_at"],
        last_used_at=row["last_used_at"],
    )
