from collections.abc import Generator

import pytest

from chalicelib.db.engine import Database
from tests.support.live import Live, live_world


@pytest.fixture
def live(database: Database) -> Generator[Live]:
    with live_world(database) as live:
        yield live
