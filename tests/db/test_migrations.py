"""A25: the history of the schema, from an empty database and from either parent, on both dialects."""

import hashlib
import logging
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DBAPIError

from chalicelib.db import migrate, tables
from chalicelib.db.engine import HEAD, Database
from chalicelib.db.migrate import MigrationRefused
from chalicelib.db.scan_rows import result_of
from chalicelib.db.types import Json, UtcDateTime
from chalicelib.db.vault import Vault, new_key
from chalicelib.stays.campsites import types_of

BASE, OUTBOX, MAIN, MERGE = "20250310_base", "ef2486672984", "09367969f1a4", "4d64e0e4ae18"
OUTBOX_SHA256 = "cefd15bb065a919d3b61af68c09fe2662193d77652322e29a191039639dc8bb5"
BOTH_DIALECTS = pytest.mark.parametrize(
    ("database_url", "empty_database_url"), [("sqlite", "sqlite"), ("postgresql", "postgresql")], indirect=True
)
KEYS = [new_key(), new_key()]
TOKEN = "uQiRzpo4DXghDmr9QzzfQu27cmVRsG"

T0 = datetime(2026, 3, 1, 8, 0, 0, tzinfo=UTC)
CHECKED = datetime(2026, 3, 2, 9, 30, 15, 250000, tzinfo=UTC)


# --- from nothing -----------------------------------------------------------------------------------------


def test_an_empty_database_reaches_the_one_head(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url, secret_keys=[])
    assert migrate.current(empty_database_url) == (HEAD,)
    with opened(empty_database_url) as database:
        database.check_head()


def test_an_empty_database_is_at_no_revision(empty_database_url: str) -> None:
    assert migrate.current(empty_database_url) == ()


def test_the_code_and_the_scripts_name_the_same_head() -> None:
    assert scripts().get_heads() == [HEAD]


def test_an_upgrade_at_head_changes_nothing(database_url: str) -> None:
    before = picture(database_url)
    migrate.upgrade(database_url, secret_keys=[])
    assert picture(database_url) == before


@BOTH_DIALECTS
def test_the_migrated_schema_equals_the_metadata_by_name_type_and_default(
    database_url: str, empty_database_url: str
) -> None:
    with opened(empty_database_url) as database, database.transaction() as connection:
        tables.metadata.create_all(connection)
    assert schema(database_url) == schema(empty_database_url)


def test_alembic_finds_no_difference_to_the_metadata(database_url: str) -> None:
    with opened(database_url) as database, database.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "target_metadata": tables.metadata}
        )
        assert compare_metadata(context, tables.metadata) == []


# --- from either parent, or both ---------------------------------------------------------------------------


@pytest.mark.parametrize("parents", [(OUTBOX,), (MAIN,), (OUTBOX, MAIN)], ids="+".join)
def test_a_parent_with_rows_reaches_head_with_every_row(empty_database_url: str, parents: tuple[str, ...]) -> None:
    sample = at(empty_database_url, *parents)
    before = counts(empty_database_url)

    migrate.upgrade(empty_database_url, secret_keys=KEYS)

    assert migrate.current(empty_database_url) == (HEAD,)
    after = counts(empty_database_url)
    assert {table: after[table] for table in before} == before
    assert after["notification_channels"] == 1
    with opened(empty_database_url) as database, database.transaction() as connection:
        holds_people(connection, sample, modes=MAIN in parents)
        holds_targets_and_scans(connection, sample, modes=MAIN in parents)
        holds_results(connection, sample)
        holds_catalogue_and_audit(connection, sample)
        if OUTBOX in parents:
            holds_intents(connection, sample)
    keeps_foreign_keys(empty_database_url)


def holds_people(connection: sa.Connection, sample: "Sample", *, modes: bool) -> None:
    users = {row["id"]: row for row in all_of(connection, tables.users)}
    assert users[sample.ada] == {
        "id": sample.ada,
        "email": "ada@example.org",
        "is_admin": True,
        "scanning_enabled": True,
        "invited_at": T0,
        "created_at": T0,
        "name": None,
        "time_zone": None,
        "password_hash": None,
        "oidc_subject": None,
    }
    assert users[sample.bob]["scanning_enabled"] is not modes
    [channel] = all_of(connection, tables.notification_channels)
    assert TOKEN not in channel["credentials"]
    assert Vault(KEYS[:1]).decrypt(channel["credentials"]) == TOKEN  # under the newest key
    assert channel | {"id": None, "credentials": None} == {
        "id": None,
        "user_id": sample.ada,
        "kind": "pushover",
        "credentials": None,
        "enabled": True,
        "disabled_reason": None,
        "refusals": 0,
        "created_at": T0,
    }


def holds_targets_and_scans(connection: sa.Connection, sample: "Sample", *, modes: bool) -> None:
    targets = {row["id"]: row for row in all_of(connection, tables.unique_targets)}
    checked = targets[sample.checked]
    assert (checked["start_date"], checked["end_date"]) == (date(2027, 7, 18), date(2027, 7, 25))
    assert (checked["last_checked_at"], checked["last_attempt_at"], checked["failures"]) == (CHECKED, CHECKED, 0)
    never = targets[sample.unchecked]
    assert (never["last_checked_at"], never["last_attempt_at"]) == (None, None)

    scans = {row["id"]: row for row in all_of(connection, tables.user_scans)}
    told = scans[sample.told]
    assert (told["version"], told["told_version"], told["told_at"]) == (1, 1, CHECKED)
    assert (told["min_stay_length"], told["preferred_types"], told["require_electric"]) == (2, ["rv", "tent"], True)
    assert told["mode"] == ("summary" if modes else "direct")
    assert (told["loops_wanted"], told["arrival_weekdays"], told["people"], told["channel_id"]) == ([], [], None, None)
    new = scans[sample.untold]
    assert (new["version"], new["told_version"], new["told_at"]) == (1, 0, None)
    assert scans[sample.paused]["is_active"] is False


def holds_results(connection: sa.Connection, sample: "Sample") -> None:
    rows = {row["campsite_id"]: row for row in all_of(connection, tables.scan_results)}
    assert rows["1234"] == {
        "target_id": sample.checked,
        "campsite_id": "1234",
        "campsite": {
            "campsite_id": "1234",
            "name": "044",
            "loop": None,
            "type": "STANDARD NONELECTRIC",
            "types": ["rv", "tent"],
            "electric": False,
            "accessible": False,
            "min_people": None,
            "max_people": None,
            "equipment": [],
        },
        "nights": {"2027-07-20": "2026-03-02T09:30:15.250000Z", "2027-07-21": "2026-03-02T09:30:15.250000Z"},
        "unknown_since": {},
    }
    assert (rows["5678"]["campsite"]["types"], rows["5678"]["campsite"]["electric"]) == ([], None)
    assert rows["90"]["nights"] == {"2027-08-02": "2026-03-01T08:00:00Z"}  # its target has no time of a check
    for row in rows.values():
        assert all(found.tzinfo for found in result_of(row).nights.values())


def holds_catalogue_and_audit(connection: sa.Connection, sample: "Sample") -> None:
    [campground] = all_of(connection, tables.campgrounds)
    assert (campground["name"], campground["enabled"], campground["reservable"]) == ("Upper Pines", True, None)
    [area] = all_of(connection, tables.recreation_areas)
    assert area["name"] == "Yosemite"
    [found] = all_of(connection, tables.search)
    assert found["terms"] == "upper pines yosemite"
    [event] = all_of(connection, tables.admin_audit_events)
    assert (event["actor_id"], event["detail"]) == (sample.ada, {"before": None, "after": ["x", 1]})


def holds_intents(connection: sa.Connection, sample: "Sample") -> None:
    rows = {row["delivery_key"]: row for row in all_of(connection, tables.notification_outbox)}
    assert rows.keys() == sample.intents.keys()
    for key, sown in sample.intents.items():
        kept = {name: value for name, value in sown.items() if name not in {"campsite_id", "finished_at"}}
        assert rows[key] == kept | {
            "delivery_key": key,
            "finished_at": sown["finished_at"],
            "channel_id": None,
            "channel_kind": None,
            "told": None,
            "claim_token": None,
            "provider_message_id": None,
        }


def keeps_foreign_keys(url: str) -> None:
    with opened(url) as database:
        with pytest.raises(DBAPIError), database.transaction() as connection:
            put(connection, "scan_results", target_id=uuid4(), campsite_id="1", campsite={}, nights={})
        with database.transaction() as connection:
            connection.execute(sa.delete(tables.unique_targets))
        with database.reading() as connection:
            assert all_of(connection, tables.user_scans) == []
            assert {row["scan_id"] for row in all_of(connection, tables.notification_outbox)} <= {None}


@pytest.mark.parametrize(
    "word",
    ["STANDARD ELECTRIC", "TENT ONLY", "RV NONELECTRIC", "YURT", "GROUP STANDARD", "BOAT IN", "PICNIC", " ", None],
)
def test_types_are_read_as_the_code_reads_them(word: str | None) -> None:
    results = scripts().get_revision("20261019_results").module
    assert results._types(word) == sorted(types_of(word))


def test_intents_that_contradict_their_state_are_mended(empty_database_url: str) -> None:
    """The earlier table did not hold `finished_at` to the state."""
    sample = at(empty_database_url, OUTBOX)
    with opened(empty_database_url) as database, database.transaction() as connection:
        connection.execute(sa.text("UPDATE notification_outbox SET finished_at = NULL WHERE status = 'failed'"))
        connection.execute(sa.text("UPDATE notification_outbox SET finished_at = created_at WHERE status = 'retry'"))

    migrate.upgrade(empty_database_url, secret_keys=KEYS)

    with opened(empty_database_url) as database, database.reading() as connection:
        rows = {row["status"]: row for row in all_of(connection, tables.notification_outbox)}
    assert rows["failed"]["finished_at"] == sample.intents["c-failed"]["next_attempt_at"]
    assert rows["retry"]["finished_at"] is None


def test_the_file_of_ef2486672984_is_never_edited() -> None:
    path = scripts().get_revision(OUTBOX).path
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == OUTBOX_SHA256


def test_no_revision_knows_the_application() -> None:
    for revision in scripts().walk_revisions():
        assert "chalicelib" not in Path(revision.path).read_text()


# --- refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parents", [(OUTBOX,), (MAIN,), (OUTBOX, MAIN)], ids="+".join)
def test_tokens_without_keys_are_refused_and_nothing_changes(empty_database_url: str, parents: tuple[str, ...]) -> None:
    at(empty_database_url, *parents)
    before = picture(empty_database_url)
    with pytest.raises(MigrationRefused, match="SITEBELL_SECRET_KEYS") as refused:
        migrate.upgrade(empty_database_url, secret_keys=[])
    assert TOKEN not in str(refused.value)
    assert picture(empty_database_url) == before


def test_a_key_that_is_none_is_refused_unnamed_and_nothing_changes(empty_database_url: str) -> None:
    at(empty_database_url, OUTBOX)
    before = picture(empty_database_url)
    with pytest.raises(MigrationRefused, match="SITEBELL_SECRET_KEYS") as refused:
        migrate.upgrade(empty_database_url, secret_keys=["not-a-key"])
    assert "not-a-key" not in str(refused.value)
    assert picture(empty_database_url) == before


@pytest.mark.parametrize("token", [None, ""])
def test_without_tokens_no_keys_are_needed(empty_database_url: str, token: str | None) -> None:
    at(empty_database_url, OUTBOX, MAIN, token=token)
    migrate.upgrade(empty_database_url, secret_keys=[])
    assert counts(empty_database_url)["notification_channels"] == 0


def test_a_database_of_another_history_is_refused(database_url: str) -> None:
    with opened(database_url) as database, database.transaction() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'cafe00000000'"))
    try:
        for attempt in (
            lambda: migrate.upgrade(database_url, secret_keys=KEYS),
            lambda: migrate.downgrade(database_url, revision="base"),
        ):
            with pytest.raises(MigrationRefused, match="cafe00000000, which this version does not know"):
                attempt()
        assert migrate.current(database_url) == ("cafe00000000",)
    finally:  # the next test gets the same PostgreSQL database
        with opened(database_url) as database, database.transaction() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = :head"), {"head": HEAD})


def test_a_revision_that_is_not_there_is_refused(empty_database_url: str) -> None:
    with pytest.raises(MigrationRefused, match="cafe00000000"):
        migrate.upgrade(empty_database_url, secret_keys=KEYS, revision="cafe00000000")


def test_an_upgrade_that_fails_at_its_last_step_changes_nothing(empty_database_url: str) -> None:
    at(empty_database_url, OUTBOX, MAIN)
    with opened(empty_database_url) as database, database.transaction() as connection:
        connection.execute(sa.text("CREATE TABLE alert_history (in_the_way INTEGER)"))
    before = picture(empty_database_url)
    with pytest.raises(DBAPIError, match="alert_history"):
        migrate.upgrade(empty_database_url, secret_keys=KEYS)
    assert picture(empty_database_url) == before
    assert migrate.current(empty_database_url) == (MAIN, OUTBOX)


@pytest.mark.parametrize("empty_database_url", ["sqlite"], indirect=True)
def test_references_that_dangle_are_refused_and_nothing_changes(empty_database_url: str) -> None:
    sample = at(empty_database_url, OUTBOX)
    with closing(sqlite3.connect(empty_database_url.removeprefix("sqlite:///"))) as file:
        file.execute("PRAGMA foreign_keys = OFF")
        file.execute("DELETE FROM unique_targets WHERE id = ?", (sample.unchecked.hex,))
        file.commit()
    before = picture(empty_database_url)
    with pytest.raises(MigrationRefused, match="scan_results to unique_targets, user_scans to unique_targets"):
        migrate.upgrade(empty_database_url, secret_keys=KEYS)
    assert picture(empty_database_url) == before


# --- and back ----------------------------------------------------------------------------------------------


def test_an_empty_database_goes_all_the_way_down_and_up(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url, secret_keys=[])
    at_head = schema(empty_database_url)
    migrate.downgrade(empty_database_url, revision="base")
    assert migrate.current(empty_database_url) == ()
    assert schema(empty_database_url) == {}
    migrate.upgrade(empty_database_url, secret_keys=[])
    assert schema(empty_database_url) == at_head


def test_every_step_down_leaves_what_the_step_up_found(empty_database_url: str) -> None:
    """With rows in every table; one line of history at a time."""
    at(empty_database_url, OUTBOX, MAIN, token=None)
    migrate.upgrade(empty_database_url, secret_keys=[], revision=MERGE)
    line = [revision.revision for revision in scripts().iterate_revisions("head", MERGE)][::-1]
    seen = [rows_and_schema(empty_database_url)]
    for revision in line:
        migrate.upgrade(empty_database_url, secret_keys=[], revision=revision)
        seen.append(rows_and_schema(empty_database_url))

    for revision in [MERGE, *line][-2::-1]:
        seen.pop()
        migrate.downgrade(empty_database_url, revision=revision)
        assert migrate.current(empty_database_url) == (revision,)
        assert rows_and_schema(empty_database_url) == seen[-1], revision


def test_the_merge_comes_apart_and_together(empty_database_url: str) -> None:
    at(empty_database_url, OUTBOX, MAIN, token=None)
    before = rows_and_schema(empty_database_url)
    migrate.upgrade(empty_database_url, secret_keys=[], revision=MERGE)
    merged = rows_and_schema(empty_database_url)
    migrate.downgrade(empty_database_url, revision=OUTBOX)
    assert migrate.current(empty_database_url) == (MAIN, OUTBOX)
    assert rows_and_schema(empty_database_url) == before
    migrate.upgrade(empty_database_url, secret_keys=[], revision=MERGE)
    assert rows_and_schema(empty_database_url) == merged


LOSSES = (  # what is changed at head, what changes it back, the way that is then refused, and the reason
    (
        "UPDATE notification_outbox SET provider_message_id = 'm'",
        "UPDATE notification_outbox SET provider_message_id = NULL",
        "20261019_results",
        "tokens and proofs",
    ),
    (
        """INSERT INTO alert_history (id, outcome, attempt_count, nights, finished_at)
           SELECT id, status, 1, '{}', created_at FROM notification_outbox WHERE status = 'sent'""",
        "DELETE FROM alert_history",
        "20261019_results",
        "what campers were told",
    ),
    (
        """UPDATE scan_results SET unknown_since = '{"2027-07-20": "x"}'""",
        "UPDATE scan_results SET unknown_since = '{}'",
        "20260914_filters",
        "scan_results",
    ),
    ("UPDATE user_scans SET people = 4", "UPDATE user_scans SET people = NULL", "20260803_pace", "filters"),
    (
        "UPDATE user_scans SET loops_wanted = '[\"A\"]'",
        "UPDATE user_scans SET loops_wanted = '[]'",
        "20260803_pace",
        "filters",
    ),
    ("UPDATE user_scans SET version = 2", "UPDATE user_scans SET version = 1", "20260803_pace", "wait to be told"),
    ("UPDATE campgrounds SET name = NULL", "UPDATE campgrounds SET name = 'A'", "20260420_channels", "nameless"),
    (
        "UPDATE notification_outbox SET delivery_key = 'summary' WHERE status = 'sent'",
        "DELETE FROM notification_outbox WHERE status = 'sent'",
        MAIN,
        "summaries",
    ),
    ("DELETE FROM scan_results", "DELETE FROM notification_outbox", BASE, "notification_outbox holds rows"),
    ("UPDATE user_scans SET mode = 'summary'", "UPDATE user_scans SET mode = 'direct'", BASE, "modes"),
    ("UPDATE users SET scanning_enabled = FALSE", "UPDATE users SET scanning_enabled = TRUE", BASE, "who may scan"),
    ("UPDATE users SET invited_at = NULL", "UPDATE users SET invited_at = created_at", BASE, "who is invited"),
    ("DELETE FROM user_scans", "DELETE FROM admin_audit_events", "base", "holds rows"),
)


def test_what_would_be_lost_refuses_the_way_back(empty_database_url: str) -> None:
    at(empty_database_url, OUTBOX, token=None)
    migrate.upgrade(empty_database_url, secret_keys=[])
    with opened(empty_database_url) as database:
        for change, change_back, revision, reason in LOSSES:
            with database.transaction() as connection:
                connection.exec_driver_sql(change)
            before = picture(empty_database_url)
            with pytest.raises(MigrationRefused, match=reason):
                migrate.downgrade(empty_database_url, revision=revision)
            assert picture(empty_database_url) == before, reason
            with database.transaction() as connection:
                connection.exec_driver_sql(change_back)


def test_encrypted_recipients_do_not_go_back_to_being_plain(empty_database_url: str) -> None:
    at(empty_database_url, OUTBOX)
    migrate.upgrade(empty_database_url, secret_keys=KEYS)
    before = picture(empty_database_url)
    with pytest.raises(MigrationRefused, match="encrypted recipients"):
        migrate.downgrade(empty_database_url, revision=MERGE)
    assert picture(empty_database_url) == before


# --- by whom and beside whom -------------------------------------------------------------------------------


def test_two_upgrades_at_once_both_succeed(empty_database_url: str) -> None:
    at(empty_database_url, OUTBOX, MAIN)
    program = "import sys; from chalicelib.db.migrate import upgrade; upgrade(sys.argv[1], secret_keys=sys.argv[2:])"
    both = [started("-c", program, empty_database_url, *KEYS) for _ in range(2)]
    for process in both:
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output, errors) == (0, "", "")
    assert migrate.current(empty_database_url) == (HEAD,)
    assert counts(empty_database_url)["notification_channels"] == 1


@pytest.mark.parametrize("empty_database_url", ["postgresql"], indirect=True)
def test_on_postgresql_an_upgrade_waits_for_another_one(empty_database_url: str) -> None:
    second = threading.Thread(target=migrate.upgrade, args=[empty_database_url], kwargs={"secret_keys": []})
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with migrate.migrating(empty_database_url) as connection:
        second.start()
        until = time.monotonic() + 20
        while not connection.execute(waiting).scalar_one():
            assert second.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
    second.join(30)
    assert migrate.current(empty_database_url) == (HEAD,)


def test_an_upgrade_logs_no_secret_and_leaves_logging_alone(
    empty_database_url: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    at(empty_database_url, OUTBOX)
    mine = logging.getLogger("chalicelib.of_mine")
    handlers = list(logging.getLogger().handlers)
    with caplog.at_level(logging.DEBUG):
        migrate.upgrade(empty_database_url, secret_keys=KEYS)
    assert not [secret for secret in (TOKEN, *KEYS) if secret in caplog.text]
    assert "".join(capfd.readouterr()) == ""
    assert not mine.disabled
    assert logging.getLogger().handlers == handlers


@pytest.mark.parametrize("empty_database_url", ["sqlite"], indirect=True)
def test_the_alembic_command_upgrades_the_database_of_the_settings(empty_database_url: str, tmp_path: Path) -> None:
    at(empty_database_url, OUTBOX)
    before = picture(empty_database_url)

    refused = alembic("upgrade", "head", url=empty_database_url, keys="", folder=tmp_path)
    assert refused.returncode != 0
    assert "SITEBELL_SECRET_KEYS" in refused.stdout + refused.stderr
    assert TOKEN not in refused.stdout + refused.stderr
    assert picture(empty_database_url) == before

    done = alembic("upgrade", "head", url=empty_database_url, keys=",".join(KEYS), folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert migrate.current(empty_database_url) == (HEAD,)


# --- what is in the databases ------------------------------------------------------------------------------


class Sample:
    """Rows that refer to every table that a later revision makes anew."""

    def __init__(self) -> None:
        self.ada, self.bob = uuid4(), uuid4()
        self.checked, self.unchecked = uuid4(), uuid4()
        self.told, self.untold, self.paused = uuid4(), uuid4(), uuid4()
        self.intents: dict[str, dict[str, Any]] = {}


def at(url: str, *revisions: str, token: str | None = TOKEN) -> Sample:
    """A database that stands at these revisions, with rows."""
    for revision in revisions:
        migrate.upgrade(url, secret_keys=[], revision=revision)
    sample = Sample()
    with opened(url) as database, database.transaction() as connection:
        _sow(connection, sample, token, modes=MAIN in revisions and token is not None)
        if OUTBOX in revisions:
            _sow_intents(connection, sample)
    return sample


def _sow(connection: sa.Connection, sample: Sample, token: str | None, *, modes: bool) -> None:
    put(connection, "providers", id="recreation_gov", name="Recreation.gov")
    place: dict[str, Any] = {"provider": "recreation_gov", "updated_at": T0}
    put(connection, "recreation_areas", recreation_area_id="2991", name="Yosemite", latitude=37.84, **place)
    put(connection, "campgrounds", campground_id="232447", name="Upper Pines", recreation_area_id="2991", **place)
    found = {"kind": "campground", "entity_id": "232447", "name": "Upper Pines", "terms": "upper pines yosemite"}
    put(connection, "search", provider="recreation_gov", rank=7, **found)

    main_line = "invited_at" in {column["name"] for column in sa.inspect(connection).get_columns("users")}
    invited: dict[str, Any] = {"invited_at": T0} if main_line else {}
    put(
        connection,
        "users",
        id=sample.ada,
        email="ada@example.org",
        is_admin=True,
        pushover_token=token,
        created_at=T0,
        **invited,
    )
    put(
        connection,
        "users",
        id=sample.bob,
        email="bob@example.org",
        created_at=T0,
        **invited | ({"scanning_enabled": False} if modes else {}),
    )
    put(
        connection,
        "admin_audit_events",
        id=uuid4(),
        actor_id=sample.ada,
        action="user.invite",
        subject_type="user",
        subject_id=str(sample.bob),
        detail={"before": None, "after": ["x", 1]},
        created_at=T0,
    )

    watched: dict[str, Any] = {"provider": "recreation_gov", "campground_id": "232447", "created_at": T0}
    nights: dict[str, Any] = {"start_date": date(2027, 7, 18), "end_date": date(2027, 7, 25)}
    put(connection, "unique_targets", id=sample.checked, last_checked_at=CHECKED, **nights, **watched)
    nights = {"start_date": date(2027, 8, 1), "end_date": date(2027, 8, 4)}
    put(connection, "unique_targets", id=sample.unchecked, **nights, **watched)

    mode: dict[str, Any] = {"mode": "summary" if modes else "direct"} if main_line else {}
    wishes: dict[str, Any] = {"min_stay_length": 2, "preferred_types": ["rv", "tent"], "require_electric": True}
    for scan, user, target, more in (
        (sample.told, sample.ada, sample.checked, wishes),
        (sample.untold, sample.bob, sample.unchecked, {}),
        (sample.paused, sample.bob, sample.checked, {"is_active": False}),
    ):
        put(connection, "user_scans", id=scan, user_id=user, target_id=target, created_at=T0, **mode, **more)

    for target, campsite, nights_open, more in (
        (
            sample.checked,
            "1234",
            ["2027-07-20", "2027-07-21"],
            {
                "campsite_name": "044",
                "campsite_type": "STANDARD NONELECTRIC",
                "is_electric": False,
                "is_accessible": False,
            },
        ),
        (sample.checked, "5678", ["2027-07-23"], {"campsite_name": ""}),
        (
            sample.unchecked,
            "90",
            ["2027-08-02"],
            {"campsite_name": "090", "campsite_type": "CABIN", "is_electric": True},
        ),
    ):
        put(
            connection,
            "scan_results",
            id=uuid4(),
            target_id=target,
            campsite_id=campsite,
            available_dates=nights_open,
            created_at=CHECKED if target == sample.checked else T0,
            **more,
        )


def _sow_intents(connection: sa.Connection, sample: Sample) -> None:
    for status, attempts, category in (
        ("pending", 0, None),
        ("sending", 1, None),
        ("retry", 2, "timeout"),
        ("sent", 1, None),
        ("skipped", 0, "stale"),
        ("failed", 4, "attempts_exhausted"),
    ):
        _sow_intent(
            connection,
            sample,
            f"c-{status}",
            user_id=sample.ada,
            scan_id=sample.told,
            target_id=sample.checked,
            status=status,
            attempt_count=attempts,
            error_category=category,
            finished_at=T0 + timedelta(minutes=5) if status in {"sent", "skipped", "failed"} else None,
        )
    gone: dict[str, Any] = {"user_id": None, "scan_id": None, "target_id": None, "finished_at": None}
    _sow_intent(connection, sample, "c-orphan", status="pending", attempt_count=0, error_category=None, **gone)


def _sow_intent(connection: sa.Connection, sample: Sample, key: str, **columns: Any) -> None:
    row: dict[str, Any] = {
        "id": uuid4(),
        "detection_id": uuid4(),
        "campsite_id": key,
        "payload": {
            "title": "Upper Pines: 044",
            "message": "é ✓",
            "booking_url": "https://www.recreation.gov/camping/campsites/1234",
            "park_name": "Upper Pines",
            "campsite_name": "044",
            "start_date": "2027-07-18",
            "end_date": "2027-07-25",
            "metadata": {
                "campsite_id": key,
                "campsite_type": "TENT",
                "is_electric": False,
                "is_accessible": False,
                "available_dates": ["2027-07-20", "2027-07-21"],
            },
        },
        "next_attempt_at": T0 + timedelta(minutes=2),
        "created_at": T0,
        **columns,
    }
    sample.intents[key] = row
    put(connection, "notification_outbox", **row)


def put(connection: sa.Connection, table: str, **row: Any) -> None:
    """One row, whatever revision the table is at: each column's type is that of its value."""
    row = {name: value for name, value in row.items() if value is not None}
    columns = [sa.column(name, _type(value)) for name, value in row.items()]
    connection.execute(sa.table(table, *columns).insert(), row)


def _type(value: Any) -> Any:
    kinds: tuple[tuple[Any, Any], ...] = (
        (UUID, sa.Uuid()),
        (datetime, UtcDateTime()),
        (date, sa.Date()),
        ((list, dict), Json),
        (bool, sa.Boolean()),
    )
    return next((column_type for kind, column_type in kinds if isinstance(value, kind)), None)


def all_of(connection: sa.Connection, table: sa.Table) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


# --- looking -----------------------------------------------------------------------------------------------


@contextmanager
def opened(url: str) -> Generator[Database]:
    with closing(Database(url)) as database:
        yield database


def counts(url: str) -> dict[str, int]:
    return {table: len(rows) for table, rows in rows_of(url).items() if table != "alembic_version"}


def picture(url: str) -> tuple[object, object]:
    """All that an upgrade could change: the schema, in SQLite's own words where it is SQLite, and every row."""
    own_words: object = None
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            own_words = file.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    return (own_words or schema(url)), rows_of(url)


def rows_and_schema(url: str) -> tuple[object, object]:
    """As `picture`, but for what no step back can restore: SQLite's wording, and the made-up ids of earlier results."""
    rows = rows_of(url)
    rows.pop("alembic_version")
    rows["scan_results"] = sorted(re.sub(r"'id': (UUID\('.*?'\)|'.*?'), ", "", row) for row in rows["scan_results"])
    return schema(url), rows


def rows_of(url: str) -> dict[str, list[str]]:
    with opened(url) as database, database.reading() as connection:
        return {
            table: sorted(
                str(dict(sorted(row.items())))
                for row in connection.exec_driver_sql(f'SELECT * FROM "{table}"').mappings()
            )
            for table in sa.inspect(connection).get_table_names()
        }


def schema(url: str) -> dict[str, dict[str, Any]]:
    """Every table's columns, constraints and indexes, by name; the order of columns counts for nothing."""
    with opened(url) as database, database.reading() as connection:
        look = sa.inspect(connection)
        parts: dict[str, Any] = {
            "columns": look.get_multi_columns(),
            "primary key": look.get_multi_pk_constraint(),
            "foreign keys": look.get_multi_foreign_keys(),
            "unique": look.get_multi_unique_constraints(),
            "checks": look.get_multi_check_constraints(),
            "indexes": look.get_multi_indexes(),
        }
        return {
            table: {part: _by_name(found[None, table]) for part, found in parts.items()}
            for table in look.get_table_names()
            if table != "alembic_version"
        }


def _by_name(found: Any) -> Any:
    """Types and the conditions of partial indexes compare by what they say."""
    if not isinstance(found, list):
        return found
    return {item["name"]: str([(key, _said(value)) for key, value in item.items()]) for item in found}


def _said(value: Any) -> Any:
    return {key: str(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def scripts() -> Any:
    return ScriptDirectory.from_config(Config(migrate.INI))


def started(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", *arguments],
        cwd=migrate.INI.parent,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def alembic(*arguments: str, url: str, keys: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command, in a folder that is not the repository's and has no `.env`."""
    return subprocess.run(
        [sys.executable, "-m", "alembic", "-c", str(migrate.INI), *arguments],
        cwd=folder,
        env={**os.environ, "SITEBELL_DATABASE_URL": url, "SITEBELL_SECRET_KEYS": keys},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
