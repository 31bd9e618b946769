"""The two dialects made alike: transactions, foreign keys, and connections that died."""

import sqlite3
import ssl
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import event, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError

from chalicelib.db import engine, tables
from chalicelib.db.engine import Database, NotAtHead, is_busy

NOW = datetime(2027, 7, 1, tzinfo=UTC)
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


# --- transactions ------------------------------------------------------------------------------------------


def test_a_transaction_is_committed_at_the_end_of_its_block(database: Database) -> None:
    with database.transaction() as connection:
        _add_user(connection)
    assert _users(database) == 1


def test_an_exception_rolls_a_transaction_back(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as connection:
            _add_user(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert _users(database) == 0


@ON_SQLITE
def test_a_writing_transaction_that_has_only_read_holds_the_write_lock(database_url: str, database: Database) -> None:
    """Python's own BEGIN would come with the first INSERT, too late for a decision that rests on the SELECT."""
    with database.transaction() as connection:
        connection.execute(sa.select(tables.users.c.id)).all()
        with pytest.raises(sqlite3.OperationalError, match="locked"), _elsewhere(database_url) as other:
            other.execute("BEGIN IMMEDIATE")


@ON_SQLITE
def test_a_writer_waits_for_the_one_that_read_first_and_sees_what_it_wrote(database: Database) -> None:
    began, seen = threading.Event(), list[int]()

    def second() -> None:
        began.set()
        with database.transaction() as connection:
            seen.append(len(connection.execute(sa.select(tables.users.c.id)).all()))
            _add_user(connection)

    with database.transaction() as connection:
        assert not connection.execute(sa.select(tables.users.c.id)).all()
        thread = threading.Thread(target=second)
        thread.start()
        began.wait(5)
        _add_user(connection)
    thread.join(10)
    assert seen == [1]
    assert _users(database) == 2


@ON_SQLITE
def test_reading_takes_no_write_lock(database_url: str, database: Database) -> None:
    with database.reading() as connection:
        connection.execute(sa.select(tables.users.c.id)).all()
        with _elsewhere(database_url) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")


@ON_SQLITE
def test_reading_goes_on_beside_a_writer(database: Database) -> None:
    with database.transaction() as writing:
        _add_user(writing)
        assert _users(database) == 0


def test_reading_sees_one_picture_or_the_newest_but_never_half_a_transaction(database: Database) -> None:
    with database.transaction() as connection:
        _add_user(connection)
        _add_user(connection)
        assert _users(database) == 0
    assert _users(database) == 2


@ON_SQLITE
def test_sqlite_writes_ahead_and_enforces_foreign_keys(database: Database) -> None:
    with database.reading() as connection:
        pragmas = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in PRAGMAS}
    assert pragmas == PRAGMAS


PRAGMAS = {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 5000}


# --- foreign keys ------------------------------------------------------------------------------------------


def test_a_result_of_no_target_is_refused(database: Database) -> None:
    row = {"target_id": uuid4(), "campsite_id": "1", "campsite": {}, "nights": {}}
    with pytest.raises(DBAPIError), database.transaction() as connection:
        connection.execute(tables.scan_results.insert(), row)


@pytest.mark.parametrize("column", ["user_id", "scan_id", "target_id", "channel_id"])
def test_an_intent_that_refers_to_nothing_is_refused(database: Database, column: str) -> None:
    with pytest.raises(DBAPIError), database.transaction() as connection:
        connection.execute(tables.notification_outbox.insert(), _intent(**{column: uuid4()}))


@pytest.mark.parametrize(
    ("table", "nulled"),
    [
        (tables.users, {"user_id", "scan_id", "channel_id"}),  # a user's scans and channels go too
        (tables.user_scans, {"scan_id"}),
        (tables.unique_targets, {"target_id", "scan_id"}),
        (tables.notification_channels, {"channel_id"}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_deletion_nulls_the_references_of_intents_and_keeps_them(
    database: Database, table: sa.Table, nulled: set[str]
) -> None:
    with database.transaction() as connection:
        references = _watch(connection)
        connection.execute(tables.notification_outbox.insert(), _intent(**references))
        connection.execute(sa.delete(table))
        row = connection.execute(sa.select(tables.notification_outbox)).mappings().one()
    assert {column for column in references if row[column] is None} == nulled


# --- busy --------------------------------------------------------------------------------------------------


@ON_SQLITE
def test_a_locked_file_is_busy(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_MS", 1)
    with _elsewhere(database_url) as other, closing(Database(database_url)) as database:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DBAPIError) as caught, database.transaction():
            pass
    assert is_busy(caught.value)


@ON_POSTGRESQL
@pytest.mark.parametrize(
    ("state", "busy"),
    [("40001", True), ("40P01", True), ("55P03", True), ("23505", False), ("42601", False), ("57014", False)],
)
def test_what_a_moment_may_mend_is_busy(database: Database, state: str, busy: bool) -> None:
    with pytest.raises(DBAPIError) as caught, database.transaction() as connection:
        connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $$")
    assert is_busy(caught.value) is busy


@ON_POSTGRESQL
def test_a_row_that_another_transaction_holds_is_busy_once_waiting_is_over(database: Database) -> None:
    with database.transaction() as connection:
        user = _add_user(connection)
    locked = sa.select(tables.users.c.id).where(tables.users.c.id == user).with_for_update()

    def wait_in_vain() -> None:
        with database.transaction() as connection:
            connection.exec_driver_sql("SET LOCAL lock_timeout = '10ms'")
            connection.execute(locked)

    with database.transaction() as holder:
        holder.execute(locked)
        with pytest.raises(DBAPIError) as caught:
            wait_in_vain()
    assert is_busy(caught.value)


def test_a_broken_rule_is_not_busy(database: Database) -> None:
    with database.transaction() as connection:
        again = {"id": _add_user(connection), "email": "again@example.org", "created_at": NOW}
    with pytest.raises(DBAPIError) as caught, database.transaction() as connection:
        connection.execute(tables.users.insert(), again)
    assert isinstance(caught.value, IntegrityError)
    assert not is_busy(caught.value)


# --- upsert and head ---------------------------------------------------------------------------------------


def test_an_upsert_inserts_once_and_updates_then(database: Database) -> None:
    for name in ("old", "new"):
        insert = database.upsert(tables.providers).values(id="p", name=name)
        with database.transaction() as connection:
            connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_={"name": name}))
    with database.reading() as connection:
        assert connection.execute(sa.select(tables.providers.c.name)).scalars().all() == ["new"]


def test_a_database_at_head_passes(database: Database) -> None:
    database.check_head()


def test_an_empty_database_is_not_at_head(empty_database_url: str) -> None:
    with closing(Database(empty_database_url)) as database, pytest.raises(NotAtHead, match="db upgrade"):
        database.check_head()


# --- PostgreSQL's connections ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://u@127.0.0.1/d", "disable"),
        ("postgresql://u@localhost/d", "disable"),
        ("postgresql://u@[::1]/d", "disable"),
        ("postgresql:///d", "disable"),
        ("postgresql://u@db.example.org/d", "require"),
        ("postgresql://u@db.example.org/d?sslmode=disable", "disable"),
        ("postgresql://u@db.example.org/d?sslmode=verify-full", "verify-full"),
        ("postgresql://u@127.0.0.1/d?sslmode=require&application_name=x", "require"),
    ],
)
def test_sslmode_is_read_and_taken_out_of_the_url(url: str, mode: str) -> None:
    rest, found = engine._without_sslmode(make_url(url))
    assert found == mode
    assert "sslmode" not in rest.query
    assert dict(rest.query) == {name: value for name, value in make_url(url).query.items() if name != "sslmode"}


def test_encryption_follows_sslmode() -> None:
    assert engine._ssl_context("disable") is False
    required, verified = engine._ssl_context("require"), engine._ssl_context("verify-full")
    assert isinstance(required, ssl.SSLContext)
    assert isinstance(verified, ssl.SSLContext)
    assert (required.verify_mode, required.check_hostname) == (ssl.CERT_NONE, False)
    assert (verified.verify_mode, verified.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize("mode", ["prefer", "allow", "verify-ca", "REQUIRE"])
def test_another_sslmode_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match="sslmode"):
        Database(f"postgresql://u@db.example.org/d?sslmode={mode}")


def test_plain_postgresql_is_taken_for_pg8000() -> None:
    with closing(Database("postgresql://u@127.0.0.1/d")) as database:
        assert database.engine.driver == "pg8000"


@ON_POSTGRESQL
def test_an_idle_connection_that_died_is_replaced(
    database_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "IDLE_CHECK", 0)
    died = _backend(database)
    assert _backend(database) == died  # it was pooled
    _terminate(database_url, died)
    assert _backend(database) != died
    with database.transaction() as connection:
        _add_user(connection)


@ON_POSTGRESQL
def test_a_connection_that_dies_in_use_fails_once_and_is_replaced(database_url: str, database: Database) -> None:
    died = _backend(database)

    def lose_it() -> None:
        with database.transaction() as connection:
            connection.execute(sa.select(1))
            _terminate(database_url, died)
            connection.execute(sa.select(1))

    with pytest.raises(DBAPIError) as caught:
        lose_it()
    assert caught.value.connection_invalidated
    assert _backend(database) != died


@ON_POSTGRESQL
def test_a_connection_that_timed_out_is_not_used_again(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the late answer would be taken for the next one's."""
    monkeypatch.setattr(engine, "NETWORK_TIMEOUT", 0.5)
    with closing(Database(database_url)) as database:
        before = _backend(database)
        with pytest.raises((DBAPIError, TimeoutError)), database.transaction() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(3)")
        assert _backend(database) != before


@ON_POSTGRESQL
def test_a_connection_comes_back_from_a_failed_transaction_clean(database: Database) -> None:
    """No ROLLBACK is sent at check-in: the transaction itself has to end."""
    before = _backend(database)
    with pytest.raises(DBAPIError), database.transaction() as connection:
        connection.exec_driver_sql("SELECT 1/0")
    assert _backend(database) == before
    with pytest.raises(DBAPIError), database.reading() as connection:
        connection.exec_driver_sql("SELECT 1/0")
    assert _backend(database) == before


@ON_POSTGRESQL
def test_many_rows_go_in_with_one_statement(database: Database) -> None:
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    rows: list[dict[str, Any]] = [{"id": f"p{number}", "name": "x"} for number in range(500)]
    with database.transaction() as connection:
        connection.execute(tables.providers.insert(), rows)
    assert len(statements) == 1
    assert "RETURNING" not in statements[0]


# --- rows --------------------------------------------------------------------------------------------------


@contextmanager
def _elsewhere(url: str) -> Generator[sqlite3.Connection]:
    """Another process's connection, which does not wait."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)) as connection:
        yield connection


def _users(database: Database) -> int:
    with database.reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(tables.users)).scalar_one()


def _add_user(connection: sa.Connection) -> UUID:
    user = uuid4()
    connection.execute(tables.users.insert(), {"id": user, "email": f"{user}@example.org", "created_at": NOW})
    return user


def _watch(connection: sa.Connection) -> dict[str, UUID]:
    """A user with a channel and a scan on a target: what an intent refers to."""
    user, channel, target, scan = _add_user(connection), uuid4(), uuid4(), uuid4()
    connection.execute(tables.providers.insert(), {"id": "p", "name": "P"})
    campground = {"provider": "p", "campground_id": "1"}
    connection.execute(tables.campgrounds.insert(), {**campground, "updated_at": NOW})
    connection.execute(
        tables.unique_targets.insert(),
        {
            "id": target,
            **campground,
            "start_date": date(2027, 7, 18),
            "end_date": date(2027, 7, 25),
            "created_at": NOW,
        },
    )
    connection.execute(
        tables.notification_channels.insert(), {"id": channel, "user_id": user, "kind": "pushover", "created_at": NOW}
    )
    connection.execute(
        tables.user_scans.insert(), {"id": scan, "user_id": user, "target_id": target, "created_at": NOW}
    )
    return {"user_id": user, "scan_id": scan, "target_id": target, "channel_id": channel}


def _intent(**columns: Any) -> dict[str, Any]:
    due = {"next_attempt_at": NOW, "created_at": NOW}
    return {"id": uuid4(), "detection_id": uuid4(), "delivery_key": "summary", "payload": {}, **due, **columns}


def _backend(database: Database) -> int:
    with database.transaction() as connection:
        return connection.execute(sa.select(sa.func.pg_backend_pid())).scalar_one()


def _terminate(url: str, backend: int) -> None:
    """As a server that restarts, or a network that forgets, would."""
    with closing(Database(url)) as other, other.transaction() as connection:
        assert connection.execute(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": backend}).scalar_one()
