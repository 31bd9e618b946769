from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from chalicelib.accounts import users
from chalicelib.db.audit import Administrator
from chalicelib.db.tables import admin_audit_events, users as users_table
from chalicelib.deps import Deps
from chalicelib.errors import EmailTaken, Invalid, NotFound
from tests.support.rows import add_scan, add_user, audited, version_of
from tests.support.standins import NOW, World


def test_an_added_person_is_invited_may_scan_and_is_found_by_any_writing_of_the_address(world: World) -> None:
    added = users.add(world.deps, "  Ann@Example.ORG ")
    assert added == users.find(world.deps, "ANN@example.org")
    assert (added.email, added.is_admin, added.scanning_enabled) == ("ann@example.org", False, True)
    assert (added.invited_at, added.created_at) == (NOW, NOW)
    assert users.add(world.deps, "root@example.org", is_admin=True).is_admin


def test_adding_is_audited_without_the_address(world: World) -> None:
    added = users.add(world.deps, "ann@example.org", is_admin=True)
    with world.deps.database.reading() as connection:
        row = connection.execute(select(admin_audit_events)).mappings().one()
    assert (row["actor_id"], row["action"], row["subject_type"], row["subject_id"]) == (
        None,
        "user.add",
        "user",
        str(added.id),
    )
    assert row["detail"] == {"is_admin": True}
    assert row["created_at"] == NOW


def test_an_address_is_taken_once_and_the_refusal_names_its_owner(world: World) -> None:
    added = users.add(world.deps, "ann@example.org")
    with pytest.raises(EmailTaken) as refused:
        users.add(world.deps, "ANN@example.org")
    assert refused.value.existing_id == added.id
    assert len(audited(world.deps)) == 1


@pytest.mark.parametrize(
    "email",
    ["", "ann", "@example.org", "ann@", "a b@example.org", "a@b@c", "ann@exa mple.org", f"a@{'b' * 260}", "a\x00@b.c"],
)
def test_what_is_no_address_is_refused(world: World, email: str) -> None:
    with pytest.raises(Invalid) as refused:
        users.add(world.deps, email)
    assert refused.value.field == "email"


def test_an_unknown_person_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        users.find(world.deps, "nobody@example.org")
    with pytest.raises(NotFound):
        users.suspend(world.deps, uuid4())


def test_people_are_paged_by_address(world: World) -> None:
    for name in ("cy", "ann", "bob"):
        add_user(world.deps, f"{name}@example.org")
    first = users.page(world.deps, limit=2)
    rest = users.page(world.deps, after=first[-1].email, limit=2)
    assert [user.email.partition("@")[0] for user in [*first, *rest]] == ["ann", "bob", "cy"]


def test_suspending_leaves_scans_as_they_are_and_restoring_renews_them(world: World) -> None:
    user_id = add_user(world.deps)
    scan_id = add_scan(world.deps, user_id)
    other = add_scan(world.deps, add_user(world.deps, "bob@example.org"))
    assert not users.suspend(world.deps, user_id).scanning_enabled
    assert version_of(world.deps, scan_id) == 1
    assert users.restore(world.deps, user_id).scanning_enabled
    assert version_of(world.deps, scan_id) == 2
    assert version_of(world.deps, other) == 1


def test_an_invitation_renews_scans_once_and_keeps_its_moment(world: World) -> None:
    user_id = add_user(world.deps)
    scan_id = add_scan(world.deps, user_id)
    with world.deps.database.transaction() as connection:
        connection.execute(users_table.update().values(invited_at=None))
    world.clock.advance(days=1)
    assert users.invite(world.deps, user_id).invited_at == NOW + timedelta(days=1)
    world.clock.advance(days=1)
    assert users.invite(world.deps, user_id).invited_at == NOW + timedelta(days=1)
    assert version_of(world.deps, scan_id) == 2


def test_a_change_is_audited_once_and_none_where_nothing_changes(world: World) -> None:
    user_id = add_user(world.deps)
    for change in (users.restore, users.suspend, users.suspend, users.restore, users.invite):
        change(world.deps, user_id)
    assert [action for action, _ in audited(world.deps)] == ["user.add", "user.restore", "user.suspend"]


@pytest.mark.parametrize("change", [users.suspend, users.invite])
def test_without_its_audit_row_a_change_does_not_happen(world: World, change: Callable[..., object]) -> None:
    user_id = add_user(world.deps)
    with world.deps.database.transaction() as connection:
        connection.execute(users_table.update().values(invited_at=None))
    before = _row(world.deps, user_id)
    with pytest.raises(DBAPIError):
        change(world.deps, user_id, by=Administrator(uuid4()))  # an actor that does not exist
    assert _row(world.deps, user_id) == before


def _row(deps: Deps, user_id: UUID) -> users.User:
    return next(user for user in users.page(deps) if user.id == user_id)
