"""A4, A8, A9: one short transaction for results and intents; modes; payloads. And what detect leaves in the log."""

import logging
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pg8000.dbapi
import pytest
from sqlalchemy import event, select, text

from chalicelib.db.tables import scan_results
from chalicelib.history import RunResult
from chalicelib.outbox.payload import NotificationDTO
from chalicelib.stays import campsites
from sandbox.campgrounds import Campground, Campsite
from sandbox.faults import Fault
from tests.support.live import APP_TOKEN, JULY, SITES, USER_KEY, Live

NIGHTS = [date(2027, 7, 9), date(2027, 7, 10)]
WORDS = [night.isoformat() for night in NIGHTS]


# --- all or nothing ----------------------------------------------------------------------------------------


@contextmanager
def no_intents(live: Live) -> Generator[None]:
    """The database refuses every new row of the outbox."""
    sqlite = live.deps.database.dialect == "sqlite"
    refuse = (
        ["CREATE TRIGGER refuse BEFORE INSERT ON notification_outbox BEGIN SELECT RAISE(ABORT, 'refused'); END"]
        if sqlite
        else [
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$",
            "CREATE TRIGGER refuse BEFORE INSERT ON notification_outbox FOR EACH ROW EXECUTE FUNCTION refuse()",
        ]
    )
    allow = ["DROP TRIGGER refuse"] if sqlite else ["DROP FUNCTION refuse CASCADE"]
    _execute(live, refuse)
    try:
        yield
    finally:
        _execute(live, allow)


def _execute(live: Live, statements: list[str]) -> None:
    with live.deps.database.transaction() as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_results_last_check_and_intents_are_written_together_or_not_at_all(live: Live) -> None:
    _, scan_id = live.camper()
    live.site.open("100", "101", NIGHTS)
    live.detect()
    before = live.target()
    live.site.open("100", "103", NIGHTS)
    live.clock.advance(minutes=1)
    with no_intents(live):
        run = live.detect()
    assert (run.outcome, run.counts["targets_failed"], run.counts["intents"]) == ("degraded", 1, 0)
    assert live.results() == {"101": WORDS}
    assert live.target()["last_checked_at"] == before["last_checked_at"]
    assert len(live.rows()) == 1

    live.clock.advance(minutes=5)
    assert live.detect().counts["intents"] == 1
    assert live.results() == {"101": WORDS, "103": WORDS}
    assert live.rows()[1]["scan_id"] == scan_id


def test_a_scan_that_joined_counts_as_told_only_when_its_intent_is_written(live: Live) -> None:
    user_id, _ = live.camper()
    live.site.open("100", "101", NIGHTS)
    live.detect()
    scan_id = live.scan(user_id, mode="direct")
    live.clock.advance(minutes=1)
    with no_intents(live):
        live.detect()
    live.clock.advance(minutes=5)
    live.detect()
    assert [row["scan_id"] for row in live.rows()][1:] == [scan_id]


# --- no transaction while the site answers -----------------------------------------------------------------


def _held_open(live: Live) -> list[str]:
    """Transactions that somebody holds right now."""
    url = live.deps.database.engine.url
    if url.get_backend_name() == "sqlite":
        assert url.database
        with closing(sqlite3.connect(url.database, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                return [str(error)]
            other.execute("ROLLBACK")
        return []
    with closing(
        pg8000.dbapi.connect(
            url.username or "", host=url.host or "", port=url.port or 5432, database=url.database, password=url.password
        )
    ) as other:
        cursor = other.cursor()
        cursor.execute(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
        )
        return [row[0] for row in cursor.fetchall()]


def test_no_transaction_is_open_while_the_booking_site_answers(live: Live) -> None:
    """Months, metadata, and the probe of a half-open breaker."""
    live.camper(dates=(date(2027, 7, 1), date(2027, 9, 1)))
    found: list[list[str]] = []
    live.site.on_request = lambda _: found.append(_held_open(live))
    live.detect()
    live.site.misbehave(Fault.STATUS, on="availability", status=429)
    live.checked_again()
    live.checked_again()
    assert len(found) == 3 + 1 + 2
    assert found == [[]] * len(found)


def test_the_look_for_open_transactions_sees_one(live: Live) -> None:
    with live.deps.database.transaction() as connection:
        connection.execute(text("SELECT 1 FROM users"))
        assert _held_open(live)


# --- what is written ---------------------------------------------------------------------------------------


@contextmanager
def written(live: Live) -> Generator[list[str]]:
    """The changing statements, as `UPDATE unique_targets`."""
    found: list[str] = []

    def note(*arguments: Any) -> None:
        words = str(arguments[2]).split()
        if words[0] in {"INSERT", "UPDATE", "DELETE"}:
            found.append(f"{words[0]} {words[1] if words[0] == 'UPDATE' else words[2]}")

    event.listen(live.deps.database.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(live.deps.database.engine, "before_cursor_execute", note)


def test_a_check_that_changes_nothing_writes_its_targets_row_and_the_budget_alone(live: Live) -> None:
    live.camper()
    live.site.open("100", "101", NIGHTS)
    live.detect()
    with written(live) as statements:
        live.checked_again()
    assert sorted(statements) == ["UPDATE provider_states", "UPDATE unique_targets", "UPDATE unique_targets"]


def test_last_check_is_the_moment_when_its_fetch_began(live: Live) -> None:
    live.camper()
    began = live.clock()
    live.site.on_request = lambda _: live.clock.advance(seconds=2)
    live.detect()
    assert live.target()["last_checked_at"] == began


def test_a_result_keeps_the_moment_when_it_was_found(live: Live) -> None:
    live.camper()
    live.site.open("100", "101", NIGHTS[0])
    live.detect()
    found = live.clock()
    live.site.open("100", "101", NIGHTS[1])
    live.checked_again()
    live.checked_again()
    with live.deps.database.reading() as connection:
        nights = connection.execute(select(scan_results.c.nights)).scalar_one()
    at = [moment.isoformat().replace("+00:00", "Z") for moment in (found, found + timedelta(minutes=1))]
    assert nights == dict(zip(WORDS, at, strict=True))


def test_nights_outside_the_range_and_nights_gone_by_are_no_results(live: Live) -> None:
    live.camper(dates=(date(2027, 7, 10), date(2027, 7, 12)))
    live.site.open("100", "101", [date(2027, 7, day) for day in range(8, 16)])
    live.detect()
    assert live.results() == {"101": ["2027-07-10", "2027-07-11"]}
    live.clock.now = live.clock.now.replace(month=7, day=11)
    live.detect()
    assert live.results() == {"101": ["2027-07-11"]}
    assert len(live.rows()) == 1


# --- A8: modes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "limit", "sites", "keys"),
    [
        ("summary", 0, 1, ["summary"]),
        ("summary", 0, 3, ["summary"]),
        ("direct", 0, 1, ["101"]),
        ("direct", 0, 5, ["101", "102", "103", "104", "105"]),
        ("direct", 2, 2, ["101", "102"]),
        ("direct", 2, 3, ["summary"]),
    ],
)
def test_a_mode_makes_intents(live: Live, mode: str, limit: int, sites: int, keys: list[str]) -> None:
    user_id, scan_id = live.camper(mode=mode)
    for site in SITES[:sites]:
        live.site.open("100", site.id, NIGHTS)
    run = live.with_settings(direct_limit=limit).detect()
    assert (run.counts["openings"], run.counts["intents"]) == (2 * sites, len(keys))
    rows = live.rows()
    assert [row["delivery_key"] for row in rows] == keys
    assert len({row["detection_id"] for row in rows}) == 1
    assert {(row["user_id"], row["scan_id"], row["target_id"]) for row in rows} == {
        (user_id, scan_id, live.target()["id"])
    }
    told = [opening["campsite_id"] for row in rows for opening in row["payload"]["openings"]]
    assert sorted(told) == [site.id for site in SITES[:sites]]


def test_the_limit_counts_campsites_that_match_and_not_those_that_open(live: Live) -> None:
    live.camper(mode="direct", campsites_wanted=frozenset({"101", "102"}))
    for site in SITES:
        live.site.open("100", site.id, NIGHTS)
    live.with_settings(direct_limit=2).detect()
    assert [row["delivery_key"] for row in live.rows()] == ["101", "102"]


def test_each_person_gets_an_intent_of_the_same_detection(live: Live) -> None:
    ann, _ = live.camper()
    bob, _ = live.camper(email="bob@example.org", key="v" * 30)
    live.site.open("100", "101", NIGHTS)
    live.detect()
    rows = live.rows()
    assert {row["user_id"] for row in rows} == {ann, bob}
    assert len({row["detection_id"] for row in rows}) == 1
    assert len({row["id"] for row in rows}) == 2


# --- A9: payload -------------------------------------------------------------------------------------------


def test_a_payload_holds_what_is_needed_to_recheck_and_round_trips(live: Live) -> None:
    site = Campsite(
        "901",
        "A 1",
        "Loop B",
        type="STANDARD ELECTRIC",
        min_people=1,
        max_people=8,
        accessible=True,
        attributes={"Electricity Hookup": "50"},
        equipment={"Trailer": 30, "Tent": 0},
    )
    live.site.add_campground(Campground("900", "UPPER PINES", (site,)))
    live.camper(campground="900", mode="direct", require_accessible=True)
    live.site.open("900", "901", NIGHTS)
    live.detect()
    row = live.row()
    payload = row["payload"]
    assert (payload["park_name"], payload["campsite_name"]) == ("Upper Pines", "A 1")
    assert payload["booking_url"] == "https://www.recreation.gov/camping/campsites/901"
    assert (payload["start_date"], payload["end_date"]) == (JULY[0].isoformat(), JULY[1].isoformat())
    assert payload["title"]
    assert "Fri 9 Jul → Sun 11 Jul, 2 nights" in payload["message"]
    (opening,) = payload["openings"]
    assert opening["nights"] == WORDS
    campsite = campsites.Campsite.from_json(opening)
    assert (campsite.id, campsite.name, campsite.loop) == ("901", "A 1", "Loop B")
    assert (campsite.types, campsite.electric, campsite.accessible) == ({"tent", "rv"}, True, True)
    assert (campsite.min_people, campsite.max_people) == (1, 8)
    assert {(item.name, item.max_length) for item in campsite.equipment} == {("Trailer", 30), ("Tent", None)}
    dto = NotificationDTO.from_json(payload)
    assert dto.to_json() == payload
    assert replace(dto) == NotificationDTO.from_json(dto.to_json())


@pytest.mark.parametrize("mode", ["summary", "direct"])
def test_a_payload_holds_no_credential_and_no_address(live: Live, mode: str) -> None:
    live.camper(mode=mode)
    live.site.open("100", "101", NIGHTS)
    live.detect()
    for secret in (USER_KEY, APP_TOKEN, "ann@example.org"):
        assert secret not in str(dict(live.row()))


# --- A22, A23 ----------------------------------------------------------------------------------------------

FIELDS = {
    "event_id",
    "job_id",
    "kind",
    "attempt",
    "started_at",
    "finished_at",
    "outcome",
    "error_category",
    "provider",
    "target_id",
}


def test_a_runs_history_holds_an_item_a_check_with_the_listed_fields_and_nothing_else(live: Live) -> None:
    live.site.add_campground(Campground("200", "Lower Pines", SITES))
    user_id, _ = live.camper()
    live.scan(user_id, campground="200")
    live.site.misbehave(Fault.TRUNCATED, on="availability", campground_id="200", times=None)
    run = live.detect()
    items = {item["target_id"]: item for item in run.to_json()["history"]}
    assert all(set(item) == FIELDS for item in items.values())
    well, ill = items[str(live.target()["id"])], items[str(live.target("200")["id"])]
    assert (well["outcome"], well["error_category"], well["attempt"]) == ("success", None, 1)
    assert (ill["outcome"], ill["error_category"], ill["attempt"]) == ("failed", "not_json", 1)
    assert {item["provider"] for item in items.values()} == {"recreation_gov"}
    assert [attempt.to_json() for attempt in live.deps.runtime.attempts()] == run.to_json()["history"]
    assert live.deps.runtime.last_discovery == run.started_at


def test_the_retries_of_a_polling_cycle_share_its_id_and_count_from_one(live: Live) -> None:
    live.camper()
    live.site.misbehave(Fault.TRUNCATED, on="availability", times=2)
    items = [item for _ in range(5) for item in live.checked_again().history]
    assert [(item.outcome, item.attempt) for item in items] == [
        ("failed", 1),
        ("failed", 2),
        ("success", 3),
        ("success", 1),
    ]
    assert len({item.job_id for item in items[:3]}) == 1
    assert items[3].job_id != items[0].job_id
    assert len({item.event_id for item in items}) == 4


def test_nothing_secret_is_logged_or_given_back(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="chalicelib")
    live.camper()
    runs: list[RunResult] = [live.detect()]
    live.site.open("100", "101", NIGHTS)
    runs.append(live.checked_again())
    for fault in (Fault.STATUS_HTML, Fault.TRUNCATED, Fault.RESET, Fault.UNKNOWN_STATUS):
        live.site.misbehave(fault, on="availability")
        live.clock.advance(minutes=20)
        runs.append(live.detect())
    said = "\n".join(
        [f"{record.getMessage()} {vars(record)}" for record in caplog.records] + [str(run.to_json()) for run in runs]
    )
    assert "found 2 new open nights" in said
    for secret in (USER_KEY, APP_TOKEN, "ann@example.org", "Please try again later", "→", live.site.url):
        assert secret not in said
