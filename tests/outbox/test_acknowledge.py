"""A12, A15, A17: what became of an attempt is written by whoever holds its token, once, and never by asking again."""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, event, select
from sqlalchemy.exc import DBAPIError

from chalicelib import wiring
from chalicelib.channels.outcomes import DeliveryError, DeliveryErrorCategory as Category, Outcome, OutcomeClass
from chalicelib.db import engine
from chalicelib.db.engine import Database
from chalicelib.db.tables import notification_channels, notification_outbox, unique_targets, users
from chalicelib.outbox.acknowledge import WRITE_TRIES, patiently
from chalicelib.outbox.claim import Claim
from chalicelib.outbox.states import Status
from tests.outbox.camp import Camp, stand_in_camp
from tests.support.standins import ACCEPTED

TRANSIENT = Outcome(OutcomeClass.TRANSIENT, Category.SERVER_ERROR)
AMBIGUOUS = Outcome(OutcomeClass.AMBIGUOUS, Category.TIMEOUT)
PERMANENT = Outcome(OutcomeClass.PERMANENT, Category.REJECTED)

CLASSES: list[tuple[Outcome | None, str, str | None]] = [
    (ACCEPTED, "sent", None),
    (Outcome(OutcomeClass.ACCEPTED), "sent", None),  # an acceptance without an id is one
    (TRANSIENT, "retry", "server_error"),
    (Outcome(OutcomeClass.TRANSIENT, Category.RATE_LIMITED), "retry", "rate_limited"),
    (Outcome(OutcomeClass.TRANSIENT, Category.QUOTA_EXHAUSTED, parks=True), "retry", "quota_exhausted"),
    (Outcome(OutcomeClass.TRANSIENT, Category.TRANSPORT_ERROR), "retry", "transport_error"),
    (AMBIGUOUS, "retry", "timeout"),  # a double beats a miss
    (Outcome(OutcomeClass.AMBIGUOUS, Category.UNPROVEN_ACCEPTANCE), "retry", "unproven_acceptance"),
    (PERMANENT, "failed", "rejected"),
    (Outcome(OutcomeClass.PERMANENT, Category.INVALID_RECIPIENT), "failed", "invalid_recipient"),
    (Outcome(OutcomeClass.PERMANENT, Category.INVALID_CREDENTIALS, parks=True), "failed", "invalid_credentials"),
    (Outcome(OutcomeClass.PERMANENT, Category.MALFORMED_PAYLOAD), "failed", "malformed_payload"),
    (None, "retry", "internal_error"),  # our own fault
]


@pytest.mark.parametrize(("outcome", "status", "category"), CLASSES)
def test_each_class_has_its_end(camp: Camp, outcome: Outcome | None, status: str, category: str | None) -> None:
    camp.true_alert()
    claim = camp.claimed()
    assert camp.acknowledge(claim, outcome) == status
    row = camp.row()
    assert (row["status"], row["error_category"], row["attempt_count"]) == (status, category, 1)
    assert (row["finished_at"] is not None) == (status in {"sent", "failed"})
    assert row["claim_token"] == claim.token  # kept until the next claim


@pytest.mark.parametrize(
    ("outcome", "category"),
    [
        (TRANSIENT, "attempts_exhausted"),
        (AMBIGUOUS, "attempts_exhausted"),
        (PERMANENT, "rejected"),
        (None, "internal_error"),
    ],
)
def test_the_fourth_attempt_is_the_last(camp: Camp, outcome: Outcome | None, category: str) -> None:
    camp.true_alert(status="retry", attempt_count=3)
    assert camp.acknowledge(camp.claimed(), outcome) is Status.FAILED
    assert camp.ended() == ("failed", category)
    assert camp.row()["finished_at"] == camp.clock()


def test_the_fourth_attempt_may_be_accepted(camp: Camp) -> None:
    camp.true_alert(status="retry", attempt_count=3, error_category="timeout")
    camp.acknowledge(camp.claimed(), ACCEPTED)
    assert camp.ended() == ("sent", None)


def test_the_upstreams_id_is_kept_and_written_by_the_acknowledgement_alone(camp: Camp) -> None:
    camp.true_alert()
    claim = camp.claimed()
    assert camp.row()["provider_message_id"] is None
    camp.acknowledge(claim, ACCEPTED)
    assert camp.row()["provider_message_id"] == "m-1"


@pytest.mark.parametrize(
    ("hint", "delay", "due"),
    [
        (None, 120, 120),
        (30, 120, 120),
        (119, 120, 120),
        (121, 120, 121),
        (86400, 120, 86400),
        (None, 0, 0),
        (5, 0, 5),
        (-60, 120, 120),
    ],
)
def test_a_retry_is_due_after_the_delay_or_when_told_whichever_is_later(
    camp: Camp, hint: int | None, delay: int, due: int
) -> None:
    camp = camp.with_settings(retry_delay=delay)
    camp.true_alert()
    claim = camp.claimed()
    camp.clock.advance(seconds=3)  # what the attempt took
    retry_at = None if hint is None else camp.clock() + timedelta(seconds=hint)
    camp.acknowledge(claim, replace(TRANSIENT, retry_at=retry_at))
    assert camp.row()["next_attempt_at"] == camp.clock() + timedelta(seconds=due)


def test_the_delay_is_two_minutes_unless_set(camp: Camp) -> None:
    assert camp.deps.settings.retry_delay == 120


# --- the story that is kept ------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "ended"), [(ACCEPTED, "sent"), (PERMANENT, "failed")])
def test_an_end_is_remembered_in_the_same_transaction(camp: Camp, outcome: Outcome, ended: str) -> None:
    camper = camp.camper()
    row_id = camp.alert(camper, status="retry", attempt_count=1)
    camp.acknowledge(camp.claimed(), outcome)
    story = camp.story()
    assert (story["id"], story["user_id"], story["scan_id"]) == (row_id, camper.user_id, camper.scan_id)
    assert (story["outcome"], story["error_category"]) == (ended, outcome.category)
    assert (story["attempt_count"], story["finished_at"]) == (2, camp.clock())
    assert story["nights"] == {"101": ["2027-07-10"]}


def test_a_retry_is_no_story_yet(camp: Camp) -> None:
    camp.true_alert()
    camp.acknowledge(camp.claimed(), TRANSIENT)
    with pytest.raises(ValueError, match="not enough values"):
        camp.story()


def test_a_person_deleted_while_the_message_was_sent_is_no_trouble(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper)
    claim = camp.claimed()
    camp.delete(users, camper.user_id)
    assert camp.acknowledge(claim, ACCEPTED) is Status.SENT
    assert camp.story()["user_id"] is None


def test_a_channel_deleted_while_the_message_was_sent_is_no_trouble(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper)
    claim = camp.claimed()
    camp.delete(notification_channels, camper.channel_id)
    refused = Outcome(OutcomeClass.PERMANENT, Category.INVALID_RECIPIENT)
    assert camp.acknowledge(claim, refused) is Status.FAILED


# --- the fence -------------------------------------------------------------------------------------------

OUTCOMES = pytest.mark.parametrize(
    "outcome",
    [ACCEPTED, TRANSIENT, AMBIGUOUS, PERMANENT, None],
    ids=["accepted", "transient", "ambiguous", "permanent", "ours"],
)


@OUTCOMES
@pytest.mark.parametrize("state", ["pending", "sending", "retry", "sent", "skipped", "failed"])
def test_another_token_changes_nothing_in_any_state(camp: Camp, outcome: Outcome | None, state: str) -> None:
    camp.true_alert()
    claim = replace(camp.claimed(), token=uuid4())
    _put(camp, state)
    before = dict(camp.row())
    assert camp.acknowledge(claim, outcome) is None
    assert dict(camp.row()) == before


@OUTCOMES
@pytest.mark.parametrize("state", ["sent", "skipped", "failed"])
def test_nothing_leaves_a_terminal_state(camp: Camp, outcome: Outcome | None, state: str) -> None:
    camp.true_alert()
    claim = camp.claimed()
    _put(camp, state)
    before = dict(camp.row())
    assert camp.acknowledge(claim, outcome) is None
    assert dict(camp.row()) == before


@pytest.mark.parametrize("outcome", [TRANSIENT, AMBIGUOUS, PERMANENT, None])
def test_a_late_answer_that_is_no_acceptance_leaves_a_retry_alone(camp: Camp, outcome: Outcome | None) -> None:
    camp.true_alert()
    claim = camp.claimed()
    camp.acknowledge(claim, TRANSIENT)
    before = dict(camp.row())
    assert camp.acknowledge(claim, outcome) is None
    assert dict(camp.row()) == before


def test_a_late_acceptance_settles_a_row_that_waits_for_its_retry(camp: Camp) -> None:
    camp.true_alert()
    claim = camp.claimed()
    camp.acknowledge(claim, AMBIGUOUS)
    camp.clock.advance(seconds=10)
    assert camp.acknowledge(claim, ACCEPTED) is Status.SENT
    row = camp.row()
    assert (row["status"], row["error_category"], row["provider_message_id"]) == ("sent", None, "m-1")
    assert (row["finished_at"], row["attempt_count"]) == (camp.clock(), 1)
    assert camp.told() == {"101": ["2027-07-10"]}
    camp.clock.advance(minutes=5)
    assert camp.claim() is None


@OUTCOMES
def test_a_late_answer_cannot_touch_a_newer_attempt(camp: Camp, outcome: Outcome | None) -> None:
    camp.true_alert()
    first = camp.claimed()
    camp.acknowledge(first, AMBIGUOUS)
    camp.clock.advance(minutes=2)
    second = camp.claimed()
    assert camp.acknowledge(first, outcome) is None
    assert (camp.status(), camp.row()["claim_token"]) == ("sending", second.token)
    assert camp.acknowledge(second, ACCEPTED) is Status.SENT


def test_the_fence_is_the_token_and_not_the_count(camp: Camp) -> None:
    """A requeue may set the count back, so that two attempts bear the same number."""
    camp.true_alert()
    first = camp.claimed()
    camp.change(notification_outbox, status="retry", attempt_count=0, next_attempt_at=camp.clock())
    second = camp.claimed()
    assert first.attempt == second.attempt
    assert camp.acknowledge(first, PERMANENT) is None
    assert camp.status() == "sending"


def test_a_stale_answer_is_logged(camp: Camp, caplog: pytest.LogCaptureFixture) -> None:
    camp.true_alert()
    claim = replace(camp.claimed(), token=uuid4())
    camp.acknowledge(claim, PERMANENT)
    assert [record.getMessage() for record in caplog.records] == ["a stale acknowledgement was dropped"]


def test_a_deleted_row_is_nobodys(camp: Camp) -> None:
    row_id = camp.true_alert()
    claim = camp.claimed()
    camp.delete(notification_outbox, row_id)
    assert camp.acknowledge(claim, ACCEPTED) is None


# --- a busy database -------------------------------------------------------------------------------------


@contextmanager
def _busy(database: Database, row_id: Any) -> Generator[Callable[[], None]]:
    """Somebody else holds what the acknowledgement needs, until the function that this gives is called."""
    if database.dialect == "sqlite":
        path = str(database.engine.url.database)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield lambda: other.execute("ROLLBACK") and None
    else:
        with closing(Database(database.engine.url.render_as_string(hide_password=False))) as elsewhere:
            connection = elsewhere.engine.connect()
            held = connection.begin()
            o = notification_outbox.c
            connection.execute(select(o.id).where(o.id == row_id).with_for_update())
            yield held.rollback
            held.rollback() if held.is_active else None
            connection.close()


@pytest.fixture
def impatient(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Generator[Camp]:
    """A campground over a database that waits for others' locks for a moment only."""
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_MS", 20)
    with closing(Database(database_url)) as database:
        if database.dialect == "postgresql":

            def be_impatient(connection: Connection) -> None:
                connection.exec_driver_sql("SET LOCAL lock_timeout = '20ms'")

            event.listen(database.engine, "begin", be_impatient)
        yield stand_in_camp(database)


def test_a_busy_database_is_written_to_again_and_the_upstream_not_asked_again(impatient: Camp) -> None:
    row_id = impatient.true_alert()
    pauses: list[float] = []
    with _busy_from_the_send_on(impatient, row_id) as release:

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                release()

        camp = replace(impatient, deps=replace(impatient.deps, pause=pause))
        result = camp.drain()
    assert (result.outcome, result.counts["sent"]) == ("success", 1)
    assert camp.ended() == ("sent", None)
    assert len(camp.channel.sent) == 1
    assert len(pauses) == 3
    assert sorted(pauses) == pauses  # ever longer
    assert all(0 < pause < 2 for pause in pauses)


def test_a_database_that_is_busy_at_the_start_does_not_stop_the_drain(impatient: Camp) -> None:
    row_id = impatient.sending(impatient.camper(), next_attempt_at=impatient.clock())
    with _busy(impatient.deps.database, row_id) as release:
        camp = replace(impatient, deps=replace(impatient.deps, pause=lambda _: release()))
        result = camp.drain()
    assert (result.outcome, result.counts["recovered"]) == ("success", 1)


def test_a_database_that_stays_busy_stops_the_drain_and_loses_nothing(impatient: Camp) -> None:
    row_id = impatient.true_alert()
    impatient.true_alert("bob@example.org", next_attempt_at=impatient.clock())
    pauses: list[float] = []
    camp = replace(impatient, deps=replace(impatient.deps, pause=pauses.append))
    with _busy_from_the_send_on(camp, row_id):
        result = camp.drain()
    assert result.outcome == "error"
    assert len(pauses) >= WRITE_TRIES - 1
    assert len(camp.channel.sent) == 1
    (in_flight,) = [row for row in camp.rows() if row["status"] == "sending"]
    camp.clock.now = in_flight["next_attempt_at"]
    camp.change(unique_targets, last_checked_at=camp.clock())
    again = camp.drain()
    assert (again.outcome, again.counts["recovered"], again.counts["sent"]) == ("success", 1, 2)
    assert [row["attempt_count"] for row in camp.rows() if row["id"] == in_flight["id"]] == [2]


@contextmanager
def _busy_from_the_send_on(camp: Camp, row_id: Any) -> Generator[Callable[[], None]]:
    """The database becomes busy while the push service answers, with whichever row is being sent."""
    releases: list[Any] = []

    def hold() -> None:
        if not releases:
            (sending,) = [row["id"] for row in camp.rows() if row["status"] == "sending"]
            holder = _busy(camp.deps.database, sending)
            release = holder.__enter__()
            releases.extend([holder, release])

    camp.channel.while_sending = hold
    try:
        yield lambda: releases[1]()  # noqa: PLW0108  # it is there later
    finally:
        camp.channel.while_sending = lambda: None
        if releases:
            releases[0].__exit__(None, None, None)


def test_only_a_busy_database_is_tried_again(camp: Camp) -> None:
    tries: list[int] = []

    def write() -> None:
        tries.append(1)
        with camp.deps.database.transaction() as connection:
            connection.exec_driver_sql("SELECT * FROM no_such_table")

    with pytest.raises(DBAPIError):
        patiently(camp.deps, write)
    assert len(tries) == 1


# --- another fault of the storage ------------------------------------------------------------------------


def test_another_fault_stops_the_drain_which_is_unhealthy_until_one_succeeds(camp: Camp) -> None:
    for number in range(5):
        camp.true_alert(f"p{number}@example.org")
    _rename(camp, "alert_history", "lost")  # which a claim does not need
    try:
        result = wiring.run("drain", camp.deps, 120)
    finally:
        _rename(camp, "lost", "alert_history")
    assert result.outcome == "error"
    assert len(camp.channel.sent) <= 2  # what was under way
    assert list(camp.deps.runtime.unhealthy()) == ["drain"]

    in_flight = [row for row in camp.rows() if row["status"] == "sending"]
    assert in_flight
    camp.clock.now = max(row["next_attempt_at"] for row in in_flight)
    again = wiring.run("drain", camp.deps, 120)
    assert (again.outcome, again.counts["recovered"]) == ("success", len(in_flight))
    assert {row["status"] for row in camp.rows()} == {"sent"}
    assert not camp.deps.runtime.unhealthy()


def _rename(camp: Camp, table: str, name: str) -> None:
    with camp.deps.database.transaction() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO {name}")


def test_a_fault_before_anything_was_claimed_is_an_error_too(camp: Camp) -> None:
    camp.true_alert()
    _rename(camp, "notification_outbox", "lost")
    try:
        result = wiring.run("drain", camp.deps, 120)
    finally:
        _rename(camp, "lost", "notification_outbox")
    assert result.outcome == "error"
    assert list(camp.deps.runtime.unhealthy()) == ["drain"]
    assert camp.status() == "pending"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_database_that_falls_silent_is_a_fault_of_the_storage(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver tells it by a bare TimeoutError."""
    monkeypatch.setattr(engine, "NETWORK_TIMEOUT", 0.3)
    with closing(Database(database_url)) as database:
        camp = stand_in_camp(database)
        row_id = camp.true_alert()
        with _busy_from_the_send_on(camp, row_id):
            result = wiring.run("drain", camp.deps, 120)
        assert result.outcome == "error"
        assert list(camp.deps.runtime.unhealthy()) == ["drain"]
        assert (camp.status(), camp.row()["attempt_count"]) == ("sending", 1)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_database_that_falls_silent_during_a_claim_charges_no_row(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "NETWORK_TIMEOUT", 0.3)
    with closing(Database(database_url)) as database:
        camp = stand_in_camp(database)
        camp.true_alert()
        with closing(Database(database_url)) as elsewhere, elsewhere.transaction() as holder:
            holder.exec_driver_sql("LOCK TABLE scan_results IN ACCESS EXCLUSIVE MODE")
            result = wiring.run("drain", camp.deps, 120)
        assert result.outcome == "error"
        assert (camp.status(), camp.row()["attempt_count"]) == ("pending", 0)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(("job", "table"), [("detect", "unique_targets"), ("prune", "alert_history")])
def test_the_other_functions_tell_of_a_silent_database_by_their_outcome_too(
    database_url: str, monkeypatch: pytest.MonkeyPatch, job: str, table: str
) -> None:
    monkeypatch.setattr(engine, "NETWORK_TIMEOUT", 0.3)
    with closing(Database(database_url)) as database:
        deps = stand_in_camp(database).deps
        with closing(Database(database_url)) as elsewhere, elsewhere.transaction() as holder:
            holder.exec_driver_sql(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            result = wiring.run(job, deps, 120)
    assert (result.job, result.outcome) == (job, "error")
    assert list(deps.runtime.unhealthy()) == [job]


# --- a raised outcome ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "status", "category"), [entry for entry in CLASSES if entry[0] is not None])
@pytest.mark.parametrize("raises", [False, True])
def test_an_outcome_keeps_its_class_whether_returned_or_raised(
    camp: Camp, outcome: Outcome, status: str, category: str | None, raises: bool
) -> None:
    camp.true_alert()
    camp.channel.outcome, camp.channel.raises = outcome, raises
    camp.drain()
    assert camp.ended() == (status, category)


def test_a_raised_outcome_says_no_more_than_its_category() -> None:
    assert str(DeliveryError(TRANSIENT)) == "server_error"


def _put(camp: Camp, state: str) -> None:
    finished = camp.clock() if state in {"sent", "skipped", "failed"} else None
    camp.change(notification_outbox, status=state, finished_at=finished)


def test_a_claim_says_neither_recipient_nor_more_of_it(camp: Camp) -> None:
    camp.true_alert()
    claim = camp.claimed()
    assert isinstance(claim, Claim)
    assert claim.recipient not in repr(claim)
