from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select

from chalicelib.accounts import tokens
from chalicelib.db.audit import OPERATOR
from chalicelib.db.tables import api_tokens
from chalicelib.errors import Forbidden, Invalid, NotFound, QuotaReached
from tests.support.rows import add_user, audited
from tests.support.standins import NOW, World


def test_a_token_opens_for_its_person_and_is_stored_as_a_hash_alone(world: World) -> None:
    ann = add_user(world.deps)
    made = tokens.make(world.deps, ann, name=" my  phone ", by=ann)
    assert made.secret.startswith("sb_")
    assert len(made.secret) == 46
    user, token = tokens.use(world.deps, made.secret) or pytest.fail("it opens nothing")
    assert (user.id, token.id, token.name, token.kind) == (ann, made.token.id, "my phone", "read_write")
    with world.deps.database.reading() as connection:
        stored = str(connection.execute(select(api_tokens)).mappings().one())
    assert made.secret not in stored
    assert made.secret[3:] not in stored


@pytest.mark.parametrize("secret", ["", "sb_", "sb_" + "x" * 43, "\x00", "\ud800", "é" * 5000])
def test_what_is_no_token_opens_nothing(world: World, secret: str) -> None:
    tokens.make(world.deps, ann := add_user(world.deps), by=ann)
    assert tokens.use(world.deps, secret) is None


def test_the_last_use_is_kept_to_the_minute(world: World) -> None:
    ann = add_user(world.deps)
    secret = tokens.make(world.deps, ann, by=ann).secret
    used = []
    for _ in range(4):
        tokens.use(world.deps, secret)
        used.append(tokens.of_user(world.deps, ann)[0].last_used_at)
        world.clock.advance(seconds=30)
    assert used[0] == used[1] == NOW
    assert used[2] == used[3] == NOW + timedelta(minutes=1)


def test_a_revoked_token_opens_nothing_and_is_listed_no_more(world: World) -> None:
    ann = add_user(world.deps)
    first, second = (tokens.make(world.deps, ann, name=name, by=ann) for name in ("first", "second"))
    tokens.revoke(world.deps, first.token.id, by=ann)
    assert tokens.use(world.deps, first.secret) is None
    assert [token.name for token in tokens.of_user(world.deps, ann)] == ["second"]
    assert tokens.use(world.deps, second.secret)
    with pytest.raises(NotFound):
        tokens.revoke(world.deps, first.token.id, by=ann)


def test_nobody_but_an_administrator_revokes_another_persons_token(world: World) -> None:
    ann, bob = add_user(world.deps), add_user(world.deps, "bob@example.org")
    made = tokens.make(world.deps, ann, by=ann)
    with pytest.raises(NotFound):
        tokens.revoke(world.deps, made.token.id, by=bob)
    tokens.revoke(world.deps, made.token.id, by=OPERATOR)
    assert ("token.revoke", str(made.token.id)) in audited(world.deps)


def test_only_an_administrator_makes_a_service_token(world: World) -> None:
    ann = add_user(world.deps)
    with pytest.raises(Forbidden):
        tokens.make(world.deps, ann, kind="service", by=ann)
    assert tokens.make(world.deps, ann, kind="service", by=OPERATOR).token.kind == "service"


def test_a_person_has_twenty_tokens_at_most_and_revoking_makes_room(world: World) -> None:
    ann = add_user(world.deps)
    made = [tokens.make(world.deps, ann, by=ann) for _ in range(20)]
    with pytest.raises(QuotaReached):
        tokens.make(world.deps, ann, by=ann)
    tokens.revoke(world.deps, made[0].token.id, by=ann)
    tokens.make(world.deps, ann, by=ann)


def test_a_kind_or_name_that_cannot_be_and_a_person_who_is_not_are_refused(world: World) -> None:
    ann = add_user(world.deps)
    with pytest.raises(Invalid):
        tokens.make(world.deps, ann, kind="all", by=ann)
    with pytest.raises(Invalid):
        tokens.make(world.deps, ann, name="x" * 101, by=ann)
    with pytest.raises(NotFound):
        tokens.make(world.deps, uuid4(), by=OPERATOR)
