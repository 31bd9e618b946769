"""The databases that tests ask for: `database`, `database_url`, `empty_database_url`, each on SQLite and PostgreSQL.

For one dialect only: `@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)`.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.support import postgres

if TYPE_CHECKING:
    from chalicelib.db.engine import Database

DIALECTS = ["sqlite", "postgresql"]
SECRET_KEYS = ["c2l0ZWJlbGwtdGVzdHMtc2l0ZWJlbGwtdGVzdHMtMDE="]

# A shared core says nothing about a single example's time.
hypothesis.settings.register_profile("sitebell", deadline=None)
hypothesis.settings.load_profile("sitebell")


@pytest.fixture(params=DIALECTS)
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database at head."""
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("sqlite_template")
        copy: Path = request.getfixturevalue("tmp_path") / "sitebell.db"
        shutil.copyfile(template, copy)
        return f"sqlite:///{copy}"
    worker: postgres.Worker = request.getfixturevalue("postgres_worker")
    return worker.at_head()


@pytest.fixture(params=DIALECTS)
def empty_database_url(request: pytest.FixtureRequest) -> str:
    """A database without a schema, for tests of migrations."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path') / 'empty.db'}"
    worker: postgres.Worker = request.getfixturevalue("postgres_worker")
    return worker.without_schema()


@pytest.fixture
def database(database_url: str) -> Iterator["Database"]:
    """The application's own view of `database_url`."""
    from chalicelib.db.engine import Database

    with closing(Database(database_url)) as database:
        yield database


@pytest.fixture(scope="session")
def secret_keys() -> list[str]:
    """The keys with which the databases were migrated."""
    return list(SECRET_KEYS)


# --- how they are made ------------------------------------------------------------------------------------


def migrate(url: str) -> None:
    """To head, by the application's own way."""
    from chalicelib.db.migrate import upgrade

    upgrade(url, secret_keys=SECRET_KEYS)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file at head, migrated once a worker and copied for each test."""
    path = tmp_path_factory.mktemp("template") / "head.db"
    migrate(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:  # what is copied is one file: no log may be left beside it
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture(scope="session")
def postgres_worker(request: pytest.FixtureRequest) -> Iterator[postgres.Worker]:
    """This worker's databases on the run's server, which a run without workers starts only here."""
    given: dict[str, Any] = getattr(request.config, "workerinput", {})
    folder = Path(given["postgres_folder"]) if given else _keeper(request.config).folder
    with closing(postgres.Worker(folder, given.get("workerid", "main"), migrate)) as worker:
        yield worker


KEEPER = pytest.StashKey[postgres.Keeper]()


def _keeper(config: pytest.Config) -> postgres.Keeper:
    if KEEPER not in config.stash:
        config.stash[KEEPER] = postgres.Keeper()
    return config.stash[KEEPER]


def pytest_configure(config: pytest.Config) -> None:
    """With workers, the server starts while they collect."""
    if not hasattr(config, "workerinput") and config.getoption("dist", "no") != "no":
        _keeper(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each worker of pytest-xdist where the server will be."""
    node.workerinput["postgres_folder"] = str(_keeper(node.config).folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server, after Ctrl-C too."""
    if KEEPER in config.stash:
        config.stash[KEEPER].stop()
