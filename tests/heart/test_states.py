"""A2 as people see it: whether a booking site answers, and how much of its budget is left."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.db.engine import Database
from chalicelib.db.tables import unique_targets
from chalicelib.detection.pace import Pace
from chalicelib.detection.states import ProviderState, provider_states
from chalicelib.providers.contract import CheckError, ProviderError
from tests.heart.test_queries import asked
from tests.support.live import START, Live
from tests.support.rows import add_scan, add_user, make_request
from tests.support.standins import NOW, SITE, StandInProvider, World, make_world

PER_MINUTE = 10


@pytest.fixture
def world(database: Database) -> World:
    return make_world(database, recreation_gov_per_minute=PER_MINUTE)


def _pace(world: World) -> Pace:
    return Pace(world.deps.database, "recreation_gov", PER_MINUTE, world.clock)


def _state(world: World) -> ProviderState:
    (state,) = provider_states(world.deps)
    return state


def test_a_site_that_was_never_asked_is_available_with_all_its_budget(world: World) -> None:
    assert _state(world).to_json() == {
        "id": "recreation_gov",
        "name": "Recreation.gov",
        "state": "available",
        "unavailable_since": None,
        "error_category": None,
        "next_try_at": None,
        "per_minute": PER_MINUTE,
        "requests_left": PER_MINUTE,
        "last_success_at": None,
    }


def test_a_site_that_was_told_to_be_left_alone_is_unavailable_then_recovering_then_available(world: World) -> None:
    _pace(world).failed(ProviderError(CheckError.BLOCKED))
    told = _state(world)
    assert (told.state, told.unavailable_since, told.error_category) == ("unavailable", NOW, "blocked")
    assert told.next_try_at == NOW + timedelta(seconds=60)
    assert told.to_json()["next_try_at"] == "2027-07-01T12:01:00.123456Z"
    world.clock.advance(seconds=60)
    recovering = _state(world)
    assert (recovering.state, recovering.unavailable_since) == ("recovering", NOW)
    assert (recovering.error_category, recovering.next_try_at) == ("blocked", None)
    _pace(world).answered()
    well = _state(world)
    assert (well.state, well.unavailable_since, well.error_category) == ("available", None, None)


def test_a_single_server_error_makes_no_site_unavailable(world: World) -> None:
    _pace(world).failed(ProviderError(CheckError.SERVER_ERROR))
    state = _state(world)
    assert (state.state, state.unavailable_since, state.error_category) == ("available", None, None)


@pytest.mark.parametrize(
    ("drawn", "seconds", "left"),
    [
        ([], 0, 10),
        ([1], 0, 9),
        ([3, 4], 0, 3),
        ([10], 0, 0),
        ([10], 5.9, 0),  # one comes back every six seconds
        ([10], 6, 1),
        ([10], 59, 9),
        ([10], 600, 10),  # and never more than a minute's
        ([14], 0, 0),  # a long range is let through when nothing was spent, and paid off later
        ([14], 24, 0),
        ([14], 30, 1),
    ],
)
def test_what_is_left_of_the_budget_is_what_could_be_drawn(
    world: World, drawn: list[int], seconds: float, left: int
) -> None:
    pace = _pace(world)
    assert all(pace.take(requests) for requests in drawn)
    world.clock.advance(seconds=seconds)
    assert _state(world).requests_left == left
    assert left == 0 or pace.take(left)
    assert not pace.take(1)


def test_the_last_success_is_that_of_its_newest_target(live: Live) -> None:
    user_id, _ = live.camper()
    live.detect()
    live.clock.advance(minutes=5)
    live.scan(user_id, people=2)
    (state,) = provider_states(live.deps)
    assert (state.state, state.last_success_at) == ("available", START)
    live.checked_again()
    (state,) = provider_states(live.deps)
    assert state.last_success_at == live.clock()
    live.set_rows(unique_targets, unique_targets.c.provider == "recreation_gov", last_checked_at=None)
    (state,) = provider_states(live.deps)
    assert state.last_success_at is None


def test_every_site_that_the_instance_knows_has_a_state_of_its_own(world: World) -> None:
    sites: Mapping[str, Any] = {"sandbox": StandInProvider(info=replace(SITE, id="sandbox", name="Sandbox"))}
    deps = replace(world.deps, providers={**sites, **world.deps.providers})
    _pace(world).failed(ProviderError(CheckError.BLOCKED))
    assert [(state.id, state.name, state.state, state.per_minute) for state in provider_states(deps)] == [
        ("recreation_gov", "Recreation.gov", "unavailable", PER_MINUTE),
        ("sandbox", "Sandbox", "available", 60),
    ]


def test_states_take_two_queries_however_many_targets_there_are(world: World) -> None:
    user_id = add_user(world.deps)
    for campground in ("232447", "232450"):
        add_scan(world.deps, user_id, make_request(campground=campground))
    with asked(world.deps.database) as found:
        provider_states(world.deps)
    assert found.transactions == [["SELECT provider_states", "SELECT unique_targets"]]
