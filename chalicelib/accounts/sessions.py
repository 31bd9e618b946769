"""Sessions: a browser that has signed in carries a cookie, of which the database knows the hash."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from uuid import UUID, uuid4

from sqlalchemy import Connection, select

from chalicelib.accounts import users
from chalicelib.accounts.users import User
from chalicelib.db.tables import sessions, users as users_table
from chalicelib.deps import Deps


@dataclass(frozen=True, slots=True)
class Begun:
    """A new session: what the browser is to keep, and until when."""

    cookie: str
    expires_at: datetime


def begin(deps: Deps, user_id: UUID) -> Begun:
    """Begin a session for whoever has just proved to be this person. It is always a new one, never one given."""
    cookie, now = token_urlsafe(32), deps.clock()
    begun = Begun(cookie, now + timedelta(days=deps.settings.session_days))
    with deps.database.transaction() as connection:
        connection.execute(
            sessions.insert().values(
                id=uuid4(), user_id=user_id, token_hash=_hash(cookie), created_at=now, expires_at=begun.expires_at
            )
        )
    return begun


def find(deps: Deps, cookie: str) -> tuple[User, UUID] | None:
    """Whose session a cookie stands for, and its id; None for one that has ended, or never was."""
    session = sessions.c
    query = (
        select(users_table, session.id.label("session_id"))
        .join_from(sessions, users_table, session.user_id == users_table.c.id)
        .where(session.token_hash == _hash(cookie), session.expires_at > deps.clock())
    )
    with deps.database.reading() as connection:
        row = connection.execute(query).mappings().first()
    return (users.of_row(row), row["session_id"]) if row else None


def end(deps: Deps, session_id: UUID) -> None:
    """Sign a browser out. One that has ended stays so."""
    with deps.database.transaction() as connection:
        connection.execute(sessions.delete().where(sessions.c.id == session_id))


def end_all(connection: Connection, user_id: UUID) -> None:
    """Sign a person out everywhere, in the transaction of the reason for it."""
    connection.execute(sessions.delete().where(sessions.c.user_id == user_id))


def _hash(cookie: str) -> str:
    return sha256(cookie.encode(errors="replace")).hexdigest()
