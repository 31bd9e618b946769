"""The database: two dialects made alike, and the one way to open a transaction."""

import sqlite3
import ssl
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    Table,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import DBAPIError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from chalicelib.settings import LOOPBACK

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

HEAD = "20261204_people"
"""The migration this code is written for; the deployed package holds no migrations, so a test compares."""

NETWORK_TIMEOUT = 15.0  # seconds, for connecting to PostgreSQL and for each read
BUSY_TIMEOUT_MS = 5000
IDLE_CHECK = 1.0  # seconds; a pooled connection idle for longer may have died in a freeze, so it is tried first

STORAGE_FAULTS = (SQLAlchemyError, OSError)
"""What the database raises: pg8000 tells of a silent server by a bare TimeoutError, which is an OSError."""

_READS = "sitebell_reads"
_BUSY_STATES = frozenset({"40001", "40P01", "55P03"})  # serialization, deadlock, lock not available
_GONE_STATES = frozenset({"57P01", "57P02", "57P03", "08003", "08006"})  # SQLAlchemy's pg8000 dialect misses these


class NotAtHead(Exception):
    """The schema is not the one this code is written for."""


class Database:
    """Where everything is kept. Opens nothing until it is first used; `close` gives all connections back.

    Takes a URL: `sqlite:///file` or `postgresql://…`, which is taken for pg8000, with an optional `?sslmode=`
    (`disable`, `require`, `verify-full`; by default `require` unless the host is this machine).
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(make_url(url))

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.engine.dialect.name

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        """A writing transaction: committed at the end of the block, rolled back by an exception.

        Keep it short; nothing that waits for a network belongs in it. On SQLite it holds the one write lock.
        """
        with self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """A transaction that only reads; on SQLite it takes no write lock."""
        with self.engine.connect().execution_options(**{_READS: True}) as connection, connection.begin():
            yield connection

    def upsert(self, table: Table) -> "postgresql.Insert | sqlite.Insert":
        """An INSERT that can be given `on_conflict_do_update` or `on_conflict_do_nothing` on either dialect."""
        if self.dialect == "postgresql":
            from sqlalchemy.dialects import postgresql

            return postgresql.insert(table)
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)

    def check_head(self) -> None:
        """Raise NotAtHead unless the schema is at HEAD."""
        with self.reading() as connection:
            found: list[str] = []
            if inspect(connection).has_table("alembic_version"):
                found = list(connection.execute(text("SELECT version_num FROM alembic_version")).scalars())
        if found != [HEAD]:
            raise NotAtHead("the database is not at the schema of this version: run `python -m chalicelib db upgrade`")

    def close(self) -> None:
        """Close every connection. The object can be used again after it."""
        self.engine.dispose()


def is_busy(error: DBAPIError) -> bool:
    """Whether the same write may succeed in a moment: locked, deadlocked or serialised away."""
    original = error.orig
    if isinstance(original, sqlite3.OperationalError):
        return original.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    return _sqlstate(original) in _BUSY_STATES


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    return _postgresql_engine(url)


def _sqlite_engine(url: URL) -> Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False}, hide_parameters=True
    )

    def on_connect(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver's own BEGIN comes too late to cover a leading SELECT
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    def on_begin(connection: Connection) -> None:
        reads = connection.get_execution_options().get(_READS)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def _postgresql_engine(url: URL) -> Engine:
    url, mode = _without_sslmode(url.set(drivername="postgresql+pg8000"))
    engine = create_engine(
        url,
        connect_args={"timeout": NETWORK_TIMEOUT, "ssl_context": _ssl_context(mode)},
        hide_parameters=True,  # an error's text must not quote what was stored
        pool_size=8,
        pool_reset_on_return=None,  # transaction() always ends its own; a second ROLLBACK is a round trip for nothing
    )
    # RETURNING doubles the price of a many-row insert under pg8000, and nothing here asks for it.
    engine.dialect.use_insertmanyvalues_wo_returning = True
    # pg8000 1.31 sends COMMIT and ROLLBACK as if they had parameters: three round trips each instead of one. And it
    # leaves the file over its socket open where the server has gone. These may go when it does neither.
    engine.dialect.do_commit = lambda connection: _send(connection, "commit")  # pyright: ignore[reportAttributeAccessIssue]
    engine.dialect.do_rollback = lambda connection: _send(connection, "rollback")  # pyright: ignore[reportAttributeAccessIssue]
    engine.dialect.do_close = _close  # pyright: ignore[reportAttributeAccessIssue]
    event.listen(engine, "handle_error", _mark_disconnect)
    event.listen(engine, "checkin", _note_idle)
    event.listen(engine, "checkout", _try_idle)
    return engine


def _send(connection: Any, words: str) -> None:
    """End a transaction, if the server is in one."""
    driver = getattr(connection, "driver_connection", None) or connection
    driver.execute_simple(words)


def _close(connection: Any) -> None:
    file = connection._sock  # noqa: SLF001
    try:
        connection.close()
    finally:
        if file is not None:
            with suppress(OSError):
                file.close()


def _without_sslmode(url: URL) -> tuple[URL, str]:
    mode = url.query.get("sslmode")
    local = not url.host or url.host in LOOPBACK
    return url.difference_update_query(["sslmode"]), str(mode or ("disable" if local else "require"))


def _ssl_context(mode: str) -> ssl.SSLContext | bool:
    """One ready context: the driver would build its own at every connection, at 80 ms each."""
    if mode == "disable":
        return False
    if mode not in {"require", "verify-full"}:
        raise ValueError("sslmode must be disable, require or verify-full")
    context = ssl.create_default_context()
    if mode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _mark_disconnect(context: ExceptionContext) -> None:
    """A read that timed out leaves the connection in the middle of an answer: it must not be used again."""
    error = context.original_exception
    if isinstance(error, TimeoutError | OSError) or _sqlstate(error) in _GONE_STATES:
        context.is_disconnect = True


def _note_idle(_: Any, record: ConnectionPoolEntry) -> None:
    record.info["idle_since"] = time.time()


def _try_idle(connection: Any, record: ConnectionPoolEntry, _: Any) -> None:
    """Try a connection that has been idle, so that none outlives a frozen function or a restarted server unseen."""
    if time.time() - record.info.get("idle_since", time.time()) < IDLE_CHECK:
        return
    try:
        connection.cursor().execute("SELECT 1")
        connection.rollback()
    except Exception as error:  # whatever it is, the connection is of no use
        raise DisconnectionError from error


def _sqlstate(error: BaseException | None) -> str | None:
    """The SQLSTATE, which pg8000 keeps under `C` in its errors' first argument."""
    details: Any = error.args[0] if error and error.args else None
    return cast("dict[str, str]", details).get("C") if isinstance(details, dict) else None
