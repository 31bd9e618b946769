from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest

from chalicelib.db.engine import Database
from tests.outbox.camp import Camp, camp_of, stand_in_camp
from tests.support.live import Live, live_world


@pytest.fixture
def camp(database: Database) -> Camp:
    """A watched campground whose push service is a stand-in within this process."""
    return stand_in_camp(database)


@pytest.fixture
def live(database: Database) -> Generator[Live]:
    with live_world(database) as live:
        yield live


@pytest.fixture
def push_camp(live: Live) -> Camp:
    """A watched campground whose push service stands on loopback: `live.push`."""
    return camp_of(live.deps, live.clock)


@pytest.fixture
def live_with(database: Database) -> Generator[Callable[..., Live]]:
    """A running world with settings of one's own."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Live:
            return stack.enter_context(live_world(database, **settings))

        yield make
