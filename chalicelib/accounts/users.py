"""People: added, found, suspended, restored, invited. Each administrator's change is audited in its transaction."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, RowMapping, select

from chalicelib.db import audit, scan_versions
from chalicelib.db.audit import OPERATOR, Administrator
from chalicelib.db.tables import users
from chalicelib.deps import Deps
from chalicelib.errors import EmailTaken, Invalid, NotFound
from chalicelib.history import iso

MAX_EMAIL = 254  # characters; longer ones cannot be delivered (RFC 5321, 4.5.3.1.3)
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"\x00-\x1f\x7f]{1,64}@[^\s@<>()\[\],;:\\\"\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class User:
    """One person. `invited_at` None: not invited, which matters where the instance is invite-only."""

    id: UUID
    email: str
    is_admin: bool
    scanning_enabled: bool
    invited_at: datetime | None
    created_at: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "email": self.email,
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
    return _user(row)


def page(deps: Deps, *, after: str = "", limit: int = 100) -> list[User]:
    """People in the order of their addresses, from the one after `after` on."""
    query = select(users).where(users.c.email > after).order_by(users.c.email).limit(limit)
    with deps.database.reading() as connection:
        return [_user(row) for row in connection.execute(query).mappings()]


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
    return _user(row)


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
        return _user(connection.execute(select(users).where(users.c.id == user_id)).mappings().one())


def _user(row: RowMapping) -> User:
    return User(
        id=row["id"],
        email=row["email"],
        is_admin=row["is_admin"],
        scanning_enabled=row["scanning_enabled"],
        invited_at=row["invited_at"],
        created_at=row["created_at"],
    )
