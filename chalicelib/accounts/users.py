"""People: added, found, suspended, restored, invited. Each administrator's change is audited in its transaction."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import available_timezones

from sqlalchemy import Connection, RowMapping, select

from chalicelib.db import audit, scan_versions
from chalicelib.db.audit import OPERATOR, Administrator
from chalicelib.db.tables import users
from chalicelib.deps import Deps
from chalicelib.errors import EmailTaken, Invalid, NotFound, Unauthorized
from chalicelib.history import iso
from chalicelib.stays.names import plain_text

MAX_EMAIL = 254  # characters; longer ones cannot be delivered (RFC 5321, 4.5.3.1.3)
MAX_NAME = 100
MAX_SUBJECT = 300  # characters of an issuer and its own name of a person
OWNER = "owner@localhost.invalid"
"""The address of the one owner of an instance where nobody signs in; nothing is ever sent there."""

_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"\x00-\x1f\x7f]{1,64}@[^\s@<>()\[\],;:\\\"\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class User:
    """One person. `invited_at` None: not invited, which matters where the instance is invite-only.

    `time_zone` is an IANA name; None: as the person's browser says.
    """

    id: UUID
    email: str
    is_admin: bool
    scanning_enabled: bool
    invited_at: datetime | None
    created_at: datetime
    name: str | None = None
    time_zone: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "email": self.email,
            "name": self.name,
            "time_zone": self.time_zone,
            "is_admin": self.is_admin,
            "scanning_enabled": self.scanning_enabled,
            "invited_at": iso(self.invited_at) if self.invited_at else None,
            "created_at": iso(self.created_at),
        }


def add(deps: Deps, email: str, *, is_admin: bool = False, by: Administrator = OPERATOR) -> User:
    """Add a person; an administrator who adds somebody invites them too.

    Raises Invalid for what is no address, EmailTaken.
    """
    email, now = normal_email(email), deps.clock()
    user = User(uuid4(), email, is_admin, scanning_enabled=True, invited_at=now, created_at=now)
    with deps.database.transaction() as connection:
        inserted = connection.execute(
            deps.database.upsert(users)
            .values(id=user.id, email=email, is_admin=is_admin, invited_at=now, created_at=now)
            .on_conflict_do_nothing(index_elements=[users.c.email])
        )
        if not inserted.rowcount:
            raise EmailTaken(connection.execute(select(users.c.id).where(users.c.email == email)).scalar_one())
        audit.note(connection, by, "user.add", ("user", user.id), now, detail={"is_admin": is_admin})
    return user


def find(deps: Deps, email: str) -> User:
    """One person by address. Raises Invalid for what is no address, NotFound."""
    email = normal_email(email)
    with deps.database.reading() as connection:
        row = connection.execute(select(users).where(users.c.email == email)).mappings().first()
    if row is None:
        raise NotFound("user", email)
    return of_row(row)


def get(deps: Deps, user_id: UUID) -> User:
    """One person by id. Raises NotFound."""
    with deps.database.reading() as connection:
        row = connection.execute(select(users).where(users.c.id == user_id)).mappings().first()
    if row is None:
        raise NotFound("user", user_id)
    return of_row(row)


def page(deps: Deps, *, text: str = "", waiting: bool = False, after: str = "", limit: int = 100) -> list[User]:
    """People in the order of their addresses, from the one after `after` on.

    `text` is how the address begins; `waiting` leaves those who have not been invited.
    """
    user = users.c
    query = select(users).where(user.email > after).order_by(user.email).limit(limit)
    if text := text.strip().lower():
        query = query.where(user.email.startswith(text, autoescape=True))
    if waiting:
        query = query.where(user.invited_at.is_(None), ~user.is_admin)
    with deps.database.reading() as connection:
        return [of_row(row) for row in connection.execute(query).mappings()]


def describe(deps: Deps, user_id: UUID, *, name: str | None, time_zone: str | None) -> User:
    """Say how a person is called and in which time zone they read; None takes it away. Raises Invalid, NotFound."""
    if name is not None:
        name = " ".join(plain_text(name, MAX_NAME + 1).split()) or None
    if name is not None and len(name) > MAX_NAME:
        raise Invalid("name", f"a name has at most {MAX_NAME} characters")
    if time_zone is not None and time_zone not in available_timezones():
        raise Invalid("time_zone", "this is no time zone; they are named like America/Los_Angeles")
    with deps.database.transaction() as connection:
        lock(connection, user_id)
        connection.execute(users.update().where(users.c.id == user_id).values(name=name, time_zone=time_zone))
        return of_row(connection.execute(select(users).where(users.c.id == user_id)).mappings().one())


def the_owner(deps: Deps) -> User:
    """Whose instance it is where nobody signs in: its first administrator, made if there is none."""
    if (owner := _first_administrator(deps)) is not None:
        return owner
    now = deps.clock()
    with deps.database.transaction() as connection:
        connection.execute(
            deps.database.upsert(users)
            .values(id=uuid4(), email=OWNER, is_admin=True, invited_at=now, created_at=now)
            .on_conflict_do_update(index_elements=[users.c.email], set_={"is_admin": True})
        )
    owner = _first_administrator(deps)
    if owner is None:
        raise NotFound("user", OWNER)
    return owner


def by_subject(deps: Deps, issuer: str, subject: str, email: str | None) -> User:
    """The person whom an issuer names, made where they are new here: then they wait to be invited, if that is needed.

    `email` is an address that the issuer has verified: it finds a person who was added before they first came, and
    None makes up one that nothing can be sent to. Raises Unauthorized where the address is another subject's.
    """
    named = f"{issuer} {subject}"
    if len(named) > MAX_SUBJECT:
        raise Unauthorized("the issuer's name for this person is too long")
    with deps.database.reading() as connection:
        row = connection.execute(select(users).where(users.c.oidc_subject == named)).mappings().first()
    if row is not None:
        return of_row(row)
    address = normal_email(email) if email else f"{sha256(named.encode()).hexdigest()[:32]}@oidc.invalid"
    with deps.database.transaction() as connection:
        connection.execute(
            deps.database.upsert(users)
            .values(id=uuid4(), email=address, oidc_subject=named, created_at=deps.clock())
            .on_conflict_do_nothing()
        )
        connection.execute(
            users.update().where(users.c.email == address, users.c.oidc_subject.is_(None)).values(oidc_subject=named)
        )
        row = connection.execute(select(users).where(users.c.oidc_subject == named)).mappings().first()
    if row is None:
        raise Unauthorized("this address belongs to another account here")
    return of_row(row)


def suspend(deps: Deps, user_id: UUID, *, by: Administrator = OPERATOR) -> User:
    """Stop checking and telling for a person; nothing of theirs is lost. Raises NotFound."""
    return _change(deps, user_id, by, "user.suspend", lambda _: {"scanning_enabled": False})


def restore(deps: Deps, user_id: UUID, *, by: Administrator = OPERATOR) -> User:
    """Let a suspended person's scans go on; what is open then is news to them. Raises NotFound."""
    return _change(deps, user_id, by, "user.restore", lambda _: {"scanning_enabled": True}, regains=True)


def invite(deps: Deps, user_id: UUID, *, by: Administrator = OPERATOR) -> User:
    """Invite a person, once: a second invitation keeps the first one's moment. Raises NotFound."""
    now = deps.clock()
    return _change(deps, user_id, by, "user.invite", lambda user: {"invited_at": user.invited_at or now}, regains=True)


def _first_administrator(deps: Deps) -> User | None:
    query = select(users).where(users.c.is_admin).order_by(users.c.created_at, users.c.id).limit(1)
    with deps.database.reading() as connection:
        row = connection.execute(query).mappings().first()
    return of_row(row) if row else None


def normal_email(email: str) -> str:
    """The one form in which an address is kept and looked for: lower case. Raises Invalid."""
    email = email.strip().lower()
    if len(email) > MAX_EMAIL or not _EMAIL.fullmatch(email):
        raise Invalid("email", "this is no e-mail address")
    return email


def lock(connection: Connection, user_id: UUID) -> User:
    """A person's row, locked against other changes of their things until the transaction ends. Raises NotFound."""
    row = (
        connection.execute(select(users).where(users.c.id == user_id).with_for_update(key_share=True))
        .mappings()
        .first()
    )
    if row is None:
        raise NotFound("user", user_id)
    return of_row(row)


def _change(
    deps: Deps,
    user_id: UUID,
    by: Administrator,
    action: str,
    changes: Callable[[User], dict[str, Any]],
    *,
    regains: bool = False,
) -> User:
    """One change and its audit row; none where it would change nothing. `regains`: it gives a permission back."""
    with deps.database.transaction() as connection:
        user = lock(connection, user_id)
        changed = {name: value for name, value in changes(user).items() if getattr(user, name) != value}
        if not changed:
            return user
        if regains:
            scan_versions.renew(connection, scan_versions.lock_scans(connection, user_id))
        connection.execute(users.update().where(users.c.id == user_id).values(**changed))
        audit.note(connection, by, action, ("user", user_id), deps.clock())
        return of_row(connection.execute(select(users).where(users.c.id == user_id)).mappings().one())


def of_row(row: RowMapping) -> User:
    """A row of `users` as a person."""
    return User(
        id=row["id"],
        email=row["email"],
        is_admin=row["is_admin"],
        scanning_enabled=row["scanning_enabled"],
        invited_at=row["invited_at"],
        created_at=row["created_at"],
        name=row["name"],
        time_zone=row["time_zone"],
    )
