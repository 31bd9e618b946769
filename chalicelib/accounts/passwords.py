"""Passwords: argon2id, and limits on trying. The limits are in the database, so that every function shares them."""

import hmac
from datetime import datetime, timedelta
from functools import lru_cache
from uuid import UUID

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, case, select

from chalicelib.accounts import sessions, users
from chalicelib.accounts.users import User
from chalicelib.db import audit
from chalicelib.db.audit import Asker
from chalicelib.db.tables import sign_in_limits, users as users_table
from chalicelib.deps import Deps
from chalicelib.errors import Invalid, TooManyTries, Unauthorized

SHORTEST = 8  # characters (NIST SP 800-63B, 3.1.1.2)
LONGEST = 200
WINDOW = timedelta(minutes=15)
TRIES = {"account": 10, "address": 30}
"""Attempts within a window before it is too many: for one account, and from one address."""

WRONG = "the address or the password is wrong"


def set_password(deps: Deps, user_id: UUID, password: str, *, by: Asker) -> None:
    """Give a person another password, and sign them out everywhere. Raises Invalid, NotFound."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise Invalid("password", f"a password has {SHORTEST} to {LONGEST} characters")
    hashed = _hasher().hash(_bytes(password))
    with deps.database.transaction() as connection:
        users.lock(connection, user_id)
        connection.execute(users_table.update().where(users_table.c.id == user_id).values(password_hash=hashed))
        sessions.end_all(connection, user_id)
        audit.note(connection, by, "user.password", ("user", user_id), deps.clock())


def check(deps: Deps, email: str, password: str, address: str) -> User:
    """Who signs in with this from that network address. Each attempt counts before it is made.

    Raises Unauthorized, whether the person or the password is unknown, and TooManyTries.
    """
    try:
        email = users.normal_email(email)
    except Invalid:
        raise Unauthorized(WRONG) from None
    account, origin = _subject(deps, "account", email), _subject(deps, "address", address)
    _count(deps, account, origin)
    with deps.database.reading() as connection:
        row = connection.execute(select(users_table).where(users_table.c.email == email)).mappings().first()
    stored: str | None = row["password_hash"] if row else None
    # An unknown person costs as much time as a known one, or the time would tell who is known.
    right = _verify(stored or _nobodys(), password[: LONGEST + 1])
    if row is None or stored is None or not right:
        raise Unauthorized(WRONG)
    renewed = _hasher().hash(_bytes(password)) if _hasher().check_needs_rehash(stored) else None
    with deps.database.transaction() as connection:
        _forgive(connection, account, origin)
        if renewed:
            this = (users_table.c.id == row["id"]) & (users_table.c.password_hash == stored)
            connection.execute(users_table.update().where(this).values(password_hash=renewed))
    return users.of_row(row)


def _count(deps: Deps, account: str, origin: str) -> None:
    """Count an attempt. Raises TooManyTries, whose attempts count as well."""
    limit, now = sign_in_limits.c, deps.clock()
    over = limit.window_ends_at <= now
    insert = deps.database.upsert(sign_in_limits).values(failures=1, window_ends_at=now + WINDOW)
    again = insert.on_conflict_do_update(
        index_elements=[limit.subject],
        set_={
            "failures": case((over, 1), else_=limit.failures + 1),
            "window_ends_at": case((over, now + WINDOW), else_=limit.window_ends_at),
        },
    )
    with deps.database.transaction() as connection:
        for subject in (account, origin):  # always in this order, so that two attempts never wait for each other
            connection.execute(again.values(subject=subject))
        found = connection.execute(select(sign_in_limits).where(limit.subject.in_([account, origin]))).all()
    ends: list[datetime] = [row.window_ends_at for row in found if row.failures > TRIES[row.subject.partition(" ")[0]]]
    if ends:
        raise TooManyTries(max(ends) - now)


def _forgive(connection: Connection, account: str, origin: str) -> None:
    """A success clears its account; for its address it only does not count, or one good account would free all."""
    limit = sign_in_limits.c
    connection.execute(sign_in_limits.delete().where(limit.subject == account))
    connection.execute(
        sign_in_limits.update().where(limit.subject == origin, limit.failures > 0).values(failures=limit.failures - 1)
    )


def _subject(deps: Deps, kind: str, value: str) -> str:
    """What is counted, without saying whom: a keyed hash, since addresses are easily guessed from a plain one."""
    return f"{kind} {hmac.new(deps.vault.derive('sign-in limits'), value.encode(), 'sha256').hexdigest()}"


def _verify(stored: str, password: str) -> bool:
    try:
        return _hasher().verify(stored, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    return password.encode(errors="surrogatepass")


@lru_cache(maxsize=1)
def _hasher() -> PasswordHasher:
    """OWASP's least for argon2id: 19 MiB and two passes, which a small function's share of a processor can bear."""
    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


@lru_cache(maxsize=1)
def _nobodys() -> str:
    return _hasher().hash(b"nobody has this password")
