import pytest

from chalicelib.db.engine import Database
from tests.support.standins import World, make_world


@pytest.fixture
def world(database: Database) -> World:
    return make_world(database)
