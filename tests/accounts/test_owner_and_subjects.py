"""People who come without being added: the owner of an instance where nobody signs in, and an issuer's people."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from chalicelib.accounts import users
from chalicelib.errors import Invalid, Unauthorized
from tests.support.rows import add_user
from tests.support.standins import World

ISSUER = "https://login.example.org"


def test_the_owner_is_the_first_administrator(world: World) -> None:
    add_user(world.deps)
    world.clock.advance(seconds=1)
    root = users.add(world.deps, "root@example.org", is_admin=True)
    world.clock.advance(seconds=1)
    users.add(world.deps, "other@example.org", is_admin=True)
    assert users.the_owner(world.deps) == root


def test_the_owner_is_made_once_however_many_ask_at_once(world: World) -> None:
    with ThreadPoolExecutor(4) as pool:
        owners = set(pool.map(lambda _: users.the_owner(world.deps).id, range(8)))
    owner = users.the_owner(world.deps)
    assert owners == {owner.id}
    assert (owner.email, owner.is_admin, owner.invited_at is not None) == (users.OWNER, True, True)


def test_an_issuers_person_is_made_once_and_waits_for_an_invitation(world: World) -> None:
    ann = users.by_subject(world.deps, ISSUER, "42", "Ann@example.org")
    assert (ann.email, ann.is_admin, ann.invited_at) == ("ann@example.org", False, None)
    assert users.by_subject(world.deps, ISSUER, "42", "moved@example.org") == ann
    assert users.by_subject(world.deps, ISSUER, "43", None).email.endswith("@oidc.invalid")


def test_an_issuers_person_who_was_added_before_is_recognised_by_the_verified_address(world: World) -> None:
    ann = add_user(world.deps)
    assert users.by_subject(world.deps, ISSUER, "42", "ann@example.org").id == ann
    with pytest.raises(Unauthorized):
        users.by_subject(world.deps, ISSUER, "43", "ann@example.org")


def test_a_person_says_how_they_are_called_and_where_they_read(world: World) -> None:
    ann = add_user(world.deps)
    told = users.describe(world.deps, ann, name="  Ann \x00 Lee ", time_zone="America/Denver")
    assert (told.name, told.time_zone) == ("Ann Lee", "America/Denver")
    assert users.get(world.deps, ann) == told
    for name, time_zone in [("x" * 101, None), (None, "Mars/Base"), (None, "../etc/passwd")]:
        with pytest.raises(Invalid):
            users.describe(world.deps, ann, name=name, time_zone=time_zone)
    told = users.describe(world.deps, ann, name=None, time_zone=None)
    assert (told.name, told.time_zone) == (None, None)


def test_people_are_searched_by_how_their_address_begins(world: World) -> None:
    for email in ("ann@example.org", "anna@example.org", "bob@example.org", "a_n@example.org"):
        add_user(world.deps, email)
    users.by_subject(world.deps, ISSUER, "1", "anne@example.org")
    assert [user.email for user in users.page(world.deps, text=" Ann")] == [
        "ann@example.org",
        "anna@example.org",
        "anne@example.org",
    ]
    assert [user.email for user in users.page(world.deps, text="a_")] == ["a_n@example.org"]
    assert [user.email for user in users.page(world.deps, waiting=True)] == ["anne@example.org"]
