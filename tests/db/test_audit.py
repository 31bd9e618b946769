"""What administrators changed: who did what to whom, newest first."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from chalicelib.db import audit
from chalicelib.db.audit import OPERATOR, Administrator, Asker
from chalicelib.db.engine import Database
from chalicelib.db.paging import Cursor
from chalicelib.db.tables import users

NOW = datetime(2027, 7, 1, 12, tzinfo=UTC)


def _administrator(database: Database, email: str = "admin@example.org") -> Administrator:
    user_id = uuid4()
    with database.transaction() as connection:
        connection.execute(users.insert().values(id=user_id, email=email, is_admin=True, created_at=NOW))
    return Administrator(user_id)


def _note(database: Database, by: Asker = OPERATOR, now: datetime = NOW, **more: Any) -> UUID:
    """A suspension; gives who was suspended."""
    subject_id = uuid4()
    with database.transaction() as connection:
        audit.note(connection, by, "user.suspend", ("user", subject_id), now, **more)
    return subject_id


def test_an_event_tells_who_did_what_to_whom_and_when(database: Database) -> None:
    admin = _administrator(database)
    subject_id = _note(database, admin, detail={"is_admin": False})
    (event,) = audit.page(database)
    assert event.to_json() == {
        "id": str(event.id),
        "actor_id": str(admin.id),
        "actor_email": "admin@example.org",
        "action": "user.suspend",
        "subject_type": "user",
        "subject_id": str(subject_id),
        "detail": {"is_admin": False},
        "created_at": "2027-07-01T12:00:00Z",
    }


def test_what_the_command_line_did_has_no_actor(database: Database) -> None:
    _note(database)
    (event,) = audit.page(database)
    assert (event.actor_id, event.actor_email) == (None, None)


def test_what_a_deleted_administrator_did_stays(database: Database) -> None:
    admin = _administrator(database)
    subject_id = _note(database, admin)
    with database.transaction() as connection:
        connection.execute(users.delete().where(users.c.id == admin.id))
    (event,) = audit.page(database)
    assert (event.actor_id, event.actor_email, event.subject_id) == (None, None, str(subject_id))


def test_events_are_paged_newest_first_even_where_moments_are_the_same(database: Database) -> None:
    subjects = {str(_note(database)) for _ in range(4)}
    oldest = str(_note(database, now=NOW - timedelta(microseconds=1)))
    newest = str(_note(database, now=NOW + timedelta(microseconds=1)))
    found: list[audit.AuditEvent] = []
    after: Cursor | None = None
    while page := audit.page(database, after=after, limit=2):
        found += page
        after = page[-1].created_at, page[-1].id
    assert (found[0].subject_id, found[-1].subject_id) == (newest, oldest)
    assert {event.subject_id for event in found[1:-1]} == subjects
    between = [event.id for event in found[1:-1]]
    assert between == sorted(between, reverse=True)


def test_a_persons_own_change_is_no_event(database: Database) -> None:
    _note(database, uuid4())
    assert audit.page(database) == []
