"""Bring a database's schema to where the code is: Alembic, driven so that a failed upgrade changes nothing.

Alembic is no part of the deployed package, so it is imported only when something is migrated.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, event, inspect, text

from chalicelib.db.engine import Database

if TYPE_CHECKING:
    from alembic.config import Config

INI = Path(__file__).resolve().parents[2] / "alembic.ini"
LOCK = 7_302_914_551  # of our own choosing: PostgreSQL's advisory lock that one upgrade holds
PATIENCE_MS = 120_000  # how long an upgrade of a SQLite file waits for its other writers


class MigrationRefused(Exception):
    """A migration cannot be done; nothing was changed. The message says why and holds nothing of what is stored."""


def upgrade(url: str, *, secret_keys: Sequence[str], revision: str = "head") -> None:
    """Bring the database up to `revision`, in one transaction.

    `secret_keys` (newest first) encrypt what an old database holds in plain; they may be empty where it holds nothing.
    Raises MigrationRefused.
    """

    def run(config: Config, connection: Connection) -> None:
        from alembic import command

        _refuse_plain_tokens(connection, secret_keys)
        command.upgrade(config, revision)

    _run(url, secret_keys, run)


def downgrade(url: str, *, revision: str) -> None:
    """Take the database back to `revision`, in one transaction.

    Raises MigrationRefused, among others where something would be lost.
    """

    def run(config: Config, _: Connection) -> None:
        from alembic import command

        command.downgrade(config, revision)

    _run(url, (), run)


def current(url: str) -> tuple[str, ...]:
    """The revisions that the database is at: none for an empty one, several where branches wait for their merge."""
    database = Database(url)
    try:
        with database.reading() as connection:
            return _revisions(connection)
    finally:
        database.close()


@contextmanager
def migrating(url: str) -> Generator[Connection]:
    """The one transaction of an upgrade or downgrade; whoever else wants one waits.

    Raises MigrationRefused, and then nothing was changed.
    """
    database = Database(url)
    locked = _sqlite_locked if database.dialect == "sqlite" else _postgresql_locked
    if database.dialect == "postgresql":
        # The timeout that suits short transactions would cut a long migration, or the wait for another one.
        event.listen(database.engine, "do_connect", _without_timeout)
    try:
        with database.engine.connect() as connection, locked(connection):
            yield connection
    finally:
        database.close()


def _run(url: str, secret_keys: Sequence[str], command: Callable[[Config, Connection], None]) -> None:
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(INI)
    with migrating(url) as connection:
        config.attributes.update(connection=connection, secret_keys=tuple(secret_keys))
        _refuse_unknown(connection, config)
        try:
            command(config, connection)
        except CommandError as error:
            raise MigrationRefused(str(error)) from None


def _refuse_unknown(connection: Connection, config: Config) -> None:
    from alembic.script import ScriptDirectory

    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    unknown = sorted(set(_revisions(connection)) - known)
    if unknown:
        raise MigrationRefused(
            f"the database is at revision {', '.join(unknown)}, which this version does not know: "
            "it belongs to a newer Sitebell or to something else"
        )


def _refuse_plain_tokens(connection: Connection, secret_keys: Sequence[str]) -> None:
    """The revision that encrypts them would refuse too; here no other has begun before it."""
    look = inspect(connection)
    if secret_keys or not look.has_table("users"):
        return
    if not any(column["name"] == "pushover_token" for column in look.get_columns("users")):
        return
    if connection.execute(text("SELECT 1 FROM users WHERE pushover_token <> '' LIMIT 1")).first():
        raise MigrationRefused(
            "users have Pushover keys, which the upgrade encrypts: set SITEBELL_SECRET_KEYS "
            "(make one with `python -m chalicelib keys new`); nothing was changed"
        )


def _revisions(connection: Connection) -> tuple[str, ...]:
    if not inspect(connection).has_table("alembic_version"):
        return ()
    return tuple(connection.execute(text("SELECT version_num FROM alembic_version ORDER BY version_num")).scalars())


# --- the two dialects ------------------------------------------------------------------------------------------------


@contextmanager
def _sqlite_locked(connection: Connection) -> Generator[None]:
    """SQLite changes a table by making it anew, and dropping the old one would follow the foreign keys to it.

    1. Foreign keys off, before BEGIN: inside a transaction SQLite ignores that.
    2. BEGIN IMMEDIATE (by the engine); the caller migrates.
    3. Every foreign key is checked; if one dangles, all is rolled back.
    4. Commit, foreign keys on.
    """
    driver: Any = connection.connection.driver_connection  # SQLAlchemy's own execute would begin a transaction
    driver.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        with connection.begin():
            yield
            _check_foreign_keys(connection)
    finally:
        driver.execute("PRAGMA foreign_keys = ON")


@contextmanager
def _postgresql_locked(connection: Connection) -> Generator[None]:
    with connection.begin():
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        yield


def _check_foreign_keys(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    if broken:
        pairs = sorted({f"{row[0]} to {row[2]}" for row in broken})
        raise MigrationRefused(f"rows refer to what is not there ({', '.join(pairs)}); nothing was changed")


def _without_timeout(_dialect: Any, _record: Any, _args: Any, parameters: dict[str, Any]) -> None:
    parameters["timeout"] = None
