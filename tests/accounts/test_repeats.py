import pytest

from chalicelib.accounts import repeats
from chalicelib.accounts.repeats import Answered
from chalicelib.errors import Invalid, KeyReused, StillRunning
from tests.support.rows import add_user
from tests.support.standins import World

FIRST, OTHER = "a" * 64, "b" * 64


def test_the_same_request_gets_its_first_answer_again_and_another_is_refused(world: World) -> None:
    ann = add_user(world.deps)
    assert repeats.begin(world.deps, ann, "k1", FIRST) is None
    with pytest.raises(StillRunning):
        repeats.begin(world.deps, ann, "k1", FIRST)
    with pytest.raises(KeyReused):
        repeats.begin(world.deps, ann, "k1", OTHER)
    repeats.finish(world.deps, ann, "k1", Answered(201, {"id": "x"}))
    assert repeats.begin(world.deps, ann, "k1", FIRST) == Answered(201, {"id": "x"})
    with pytest.raises(KeyReused):
        repeats.begin(world.deps, ann, "k1", OTHER)


def test_keys_are_a_persons_own(world: World) -> None:
    ann, bob = add_user(world.deps), add_user(world.deps, "bob@example.org")
    assert repeats.begin(world.deps, ann, "k", FIRST) is None
    assert repeats.begin(world.deps, bob, "k", OTHER) is None


def test_what_came_to_nothing_or_was_lost_may_be_tried_again(world: World) -> None:
    ann = add_user(world.deps)
    repeats.begin(world.deps, ann, "k", FIRST)
    repeats.abandon(world.deps, ann, "k")
    assert repeats.begin(world.deps, ann, "k", FIRST) is None
    world.clock.advance(seconds=60)
    assert repeats.begin(world.deps, ann, "k", FIRST) is None


def test_an_answer_is_kept_for_24_hours(world: World) -> None:
    ann = add_user(world.deps)
    repeats.begin(world.deps, ann, "k", FIRST)
    repeats.finish(world.deps, ann, "k", Answered(204, None))
    repeats.abandon(world.deps, ann, "k")  # an answer is not forgotten by it
    world.clock.advance(hours=23, minutes=59)
    assert repeats.begin(world.deps, ann, "k", FIRST) == Answered(204, None)
    world.clock.advance(minutes=1)
    assert repeats.begin(world.deps, ann, "k", OTHER) is None


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "a\nb", "é", "a "])
def test_what_is_no_key_is_refused(world: World, key: str) -> None:
    with pytest.raises(Invalid):
        repeats.begin(world.deps, add_user(world.deps), key, FIRST)
