"""Passwords, the limits on trying them, and the sessions that they open."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from chalicelib.accounts import passwords, sessions
from chalicelib.db.audit import OPERATOR
from chalicelib.db.tables import sessions as sessions_table, sign_in_limits, users as users_table
from chalicelib.errors import Invalid, TooManyTries, Unauthorized
from tests.support.rows import add_user
from tests.support.standins import World

ANN, SECRET, HERE = "ann@example.org", "correct horse", "192.0.2.7"


def fail(world: World, times: int, *, email: str = ANN, address: str = HERE) -> None:
    for _ in range(times):
        with pytest.raises(Unauthorized):
            passwords.check(world.deps, email, "wrong", address)


def test_the_right_password_says_who_signs_in_and_a_wrong_one_nothing(world: World) -> None:
    ann = add_user(world.deps)
    with pytest.raises(Unauthorized):  # nobody has set one yet
        passwords.check(world.deps, ANN, SECRET, HERE)
    passwords.set_password(world.deps, ann, SECRET, by=OPERATOR)
    assert passwords.check(world.deps, " ANN@example.org", SECRET, HERE).id == ann
    told = []
    for email, password in [(ANN, "wrong"), ("bob@example.org", SECRET), ("no address", SECRET), (ANN, "")]:
        with pytest.raises(Unauthorized) as refused:
            passwords.check(world.deps, email, password, HERE)
        told.append(str(refused.value))
    assert len(set(told)) == 1


def test_a_password_is_kept_as_argon2id_with_at_least_nineteen_mebibytes(world: World) -> None:
    passwords.set_password(world.deps, add_user(world.deps), SECRET, by=OPERATOR)
    with world.deps.database.reading() as connection:
        stored = connection.execute(select(users_table.c.password_hash)).scalar_one()
    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


@pytest.mark.parametrize("password", ["", "seven77", "x" * 201])
def test_a_password_that_is_too_short_or_too_long_is_refused(world: World, password: str) -> None:
    with pytest.raises(Invalid):
        passwords.set_password(world.deps, add_user(world.deps), password, by=OPERATOR)


def test_the_eleventh_attempt_for_one_account_is_too_many_even_with_the_right_password(world: World) -> None:
    passwords.set_password(world.deps, add_user(world.deps), SECRET, by=OPERATOR)
    for number in range(10):
        fail(world, 1, address=f"192.0.2.{number}")
    with pytest.raises(TooManyTries) as refused:
        passwords.check(world.deps, ANN, SECRET, "198.51.100.1")
    assert refused.value.retry_after == timedelta(minutes=15)
    world.clock.advance(minutes=15)
    passwords.check(world.deps, ANN, SECRET, HERE)


def test_one_address_tries_thirty_accounts_at_most(world: World) -> None:
    passwords.set_password(world.deps, add_user(world.deps), SECRET, by=OPERATOR)
    for number in range(30):
        fail(world, 1, email=f"{number}@example.org")
    with pytest.raises(TooManyTries):
        passwords.check(world.deps, ANN, SECRET, HERE)
    passwords.check(world.deps, ANN, SECRET, "198.51.100.1")


def test_a_success_clears_its_account_and_does_not_free_its_address(world: World) -> None:
    passwords.set_password(world.deps, add_user(world.deps), SECRET, by=OPERATOR)
    fail(world, 9)
    passwords.check(world.deps, ANN, SECRET, HERE)
    fail(world, 10)
    with world.deps.database.reading() as connection:
        kept = {row.subject.split()[0]: row.failures for row in connection.execute(select(sign_in_limits))}
    assert kept == {"account": 10, "address": 19}


def test_limits_name_neither_account_nor_address(world: World) -> None:
    fail(world, 1)
    with world.deps.database.reading() as connection:
        stored = str(connection.execute(select(sign_in_limits)).all())
    assert "ann" not in stored
    assert HERE not in stored


def test_a_session_opens_until_it_expires_or_ends(world: World) -> None:
    ann = add_user(world.deps)
    begun, other = sessions.begin(world.deps, ann), sessions.begin(world.deps, ann)
    assert begun.cookie != other.cookie
    user, session_id = sessions.find(world.deps, begun.cookie) or pytest.fail("no session")
    assert user.id == ann
    sessions.end(world.deps, session_id)
    assert sessions.find(world.deps, begun.cookie) is None
    assert sessions.find(world.deps, other.cookie)
    world.clock.advance(days=30)
    assert sessions.find(world.deps, other.cookie) is None
    assert sessions.find(world.deps, "\ud800") is None


def test_the_database_knows_no_cookie(world: World) -> None:
    begun = sessions.begin(world.deps, add_user(world.deps))
    with world.deps.database.reading() as connection:
        assert begun.cookie not in str(connection.execute(select(sessions_table)).mappings().one())


def test_another_password_signs_out_everywhere(world: World) -> None:
    ann, bob = add_user(world.deps), add_user(world.deps, "bob@example.org")
    hers, his = sessions.begin(world.deps, ann), sessions.begin(world.deps, bob)
    passwords.set_password(world.deps, ann, SECRET, by=OPERATOR)
    assert sessions.find(world.deps, hers.cookie) is None
    assert sessions.find(world.deps, his.cookie)
