"""A10 to A19 as one run: what is due is sent once, within its time, and nothing that goes wrong stops the rest."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime
from threading import Barrier, Event, Lock
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import event, update

from chalicelib import wiring
from chalicelib.channels.contract import ChannelInfo, Message
from chalicelib.channels.outcomes import DeliveryErrorCategory as Category, Outcome, OutcomeClass
from chalicelib.db.engine import Database
from chalicelib.db.tables import (
    notification_channels,
    notification_outbox,
    scan_results,
    unique_targets,
    user_scans,
    users,
)
from chalicelib.db.vault import Vault, new_key
from chalicelib.history import RunResult
from chalicelib.outbox import drain
from chalicelib.outbox.acknowledge import acknowledge
from chalicelib.outbox.claim import LEASE_MARGIN
from sandbox.push_rules import Outcome as Push, Reply
from sandbox.wire import Request
from tests.outbox.camp import KEY, Camp, camp_of, july, later
from tests.outbox.processes import drain_twice_at_once
from tests.outbox.test_payload import GOOD, JSON, paths_of, spoilt
from tests.support.live import Live
from tests.support.standins import ACCEPTED, SERVICE, StandInChannel, open_connections

FAULT = Outcome(OutcomeClass.TRANSIENT, Category.SERVER_ERROR)
REJECTED = Outcome(OutcomeClass.PERMANENT, Category.REJECTED)
LOOK = "FOR UPDATE OF o SKIP LOCKED"
"""What a claim's statement ends with under PostgreSQL."""
COUNTS = ["claimed", "recovered", "sent", "retried", "skipped", "failed", "remaining"]


def _people(camp: Camp, count: int) -> None:
    for number in range(count):
        camp.true_alert(f"p{number}@example.org", str(number % 10) * 30)


# --- the result ------------------------------------------------------------------------------------------


def test_an_empty_outbox_is_a_success(camp: Camp) -> None:
    result = camp.drain()
    assert (result.job, result.outcome, result.history) == ("drain", "success", ())
    assert result.counts == dict.fromkeys(COUNTS, 0)


@pytest.mark.parametrize("workers", [1, 4])
def test_what_happened_is_counted(camp: Camp, workers: int) -> None:
    camp.true_alert()
    camp.alert(camp.camper("paused@example.org", is_active=False))
    camp.alert(camp.camper("later@example.org"), next_attempt_at=later(camp.clock(), hours=1))
    camp.sending(camp.camper("interrupted@example.org"), next_attempt_at=camp.clock())
    result = camp.drain(workers=workers)
    assert result.counts == {
        "claimed": 2,
        "recovered": 1,
        "sent": 2,
        "retried": 0,
        "skipped": 1,
        "failed": 0,
        "remaining": 0,
    }
    assert result.outcome == "success"


@pytest.mark.parametrize(("outcome", "counted"), [(FAULT, "retried"), (REJECTED, "failed")])
def test_a_row_that_fails_degrades_the_run(camp: Camp, outcome: Outcome, counted: str) -> None:
    camp.true_alert()
    camp.channel.outcome = outcome
    result = camp.drain()
    assert (result.outcome, result.counts["claimed"], result.counts[counted]) == ("degraded", 1, 1)


def test_each_attempt_is_in_the_history(camp: Camp) -> None:
    row_id = camp.true_alert(status="retry", attempt_count=1)
    camp.channel.outcome = FAULT
    result = camp.drain()
    (attempt,) = result.history
    told = attempt.to_json()
    assert set(told) == {
        *("event_id", "job_id", "kind", "attempt", "started_at", "finished_at", "outcome", "error_category"),
        *("provider", "target_id"),
    }
    assert (told["job_id"], told["attempt"], told["outcome"]) == (str(row_id), 2, "retried")
    assert (told["error_category"], told["target_id"]) == ("server_error", str(camp.target_id))
    assert camp.deps.runtime.attempts() == [attempt]


def test_two_attempts_of_a_row_are_two_events_of_one_job(camp: Camp) -> None:
    camp.true_alert()
    camp.channel.outcome = FAULT
    first = camp.drain()
    camp.clock.advance(minutes=2)
    second = camp.drain()
    one, other = first.history[0], second.history[0]
    assert one.job_id == other.job_id
    assert one.event_id != other.event_id
    assert (one.attempt, other.attempt) == (1, 2)


def test_a_deployment_that_pauses_sending_claims_nothing(camp: Camp) -> None:
    _people(camp, 2)
    result = camp.with_settings(pause_sending=True).drain()
    assert (result.counts["claimed"], result.counts["remaining"], result.outcome) == (0, 2, "success")
    assert [row["status"] for row in camp.rows()] == ["pending", "pending"]
    assert camp.drain().counts["sent"] == 2


# --- four attempts ---------------------------------------------------------------------------------------


def test_there_are_four_attempts_two_minutes_apart_and_no_fifth(camp: Camp) -> None:
    camp.true_alert()
    camp.channel.outcome = FAULT
    for attempt in range(1, 5):
        assert camp.drain().counts["claimed"] == 1
        assert camp.row()["attempt_count"] == attempt
        camp.clock.advance(seconds=119)
        assert camp.drain().counts["claimed"] == 0
        camp.clock.advance(seconds=1)
    assert camp.drain().counts["claimed"] == 0
    assert camp.ended() == ("failed", "attempts_exhausted")
    assert len(camp.channel.sent) == 4


def test_an_interrupted_attempt_is_one_of_the_four(camp: Camp) -> None:
    camp.true_alert()
    camp.channel.outcome = FAULT
    camp.claimed()  # and its process dies
    camp.clock.now = camp.row()["next_attempt_at"]
    for _ in range(5):
        camp.drain()
        camp.clock.advance(minutes=2)
    assert camp.ended() == ("failed", "attempts_exhausted")
    assert len(camp.channel.sent) == 3


def test_a_retry_tells_what_is_true_then(camp: Camp) -> None:
    camp.results({"101": july(10, 11)})
    camp.alert(camp.camper(), {"101": july(10, 11)})
    camp.channel.outcome = FAULT
    camp.drain()
    camp.results({"101": july(11)})
    camp.clock.advance(minutes=2)
    camp.channel.outcome = ACCEPTED
    camp.drain()
    assert [message.items[0][-30:] for _, message in camp.channel.sent] == [
        "Sat 10 Jul → Mon 12 Jul, 2 nights"[-30:],
        "Sun 11 Jul → Mon 12 Jul, 1 night"[-30:],
    ]
    assert camp.told() == {"101": ["2027-07-11"]}


@pytest.mark.parametrize("workers", [1, 4])
def test_without_a_delay_a_row_is_tried_once_a_run_all_the_same(camp: Camp, workers: int) -> None:
    camp = camp.with_settings(retry_delay=0)
    _people(camp, 2)
    camp.channel.outcome = FAULT
    camp.channel.while_sending = lambda: camp.clock.advance(milliseconds=5)
    for attempt in range(1, 3):
        camp.clock.advance(seconds=1)
        assert camp.drain(workers=workers).counts["claimed"] == 2
        assert [row["attempt_count"] for row in camp.rows()] == [attempt, attempt]


# --- time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("short_by", "claimed"), [(0, 1), (1, 0)])
def test_no_attempt_begins_that_could_not_end_in_time(camp: Camp, short_by: int, claimed: int) -> None:
    camp.true_alert()
    needed = camp.deps.settings.attempt_deadline + LEASE_MARGIN.total_seconds()
    result = camp.drain(seconds=needed - short_by)
    assert (result.counts["claimed"], result.counts["remaining"]) == (claimed, 1 - claimed)
    assert result.outcome == "success"
    assert camp.row()["attempt_count"] == claimed


def test_what_the_time_does_not_suffice_for_stays_due(camp: Camp) -> None:
    _people(camp, 5)
    camp.channel.while_sending = lambda: camp.clock.advance(seconds=35)
    result = camp.drain(seconds=120)  # the third begins after 70 seconds and has 50; a fourth would have 15
    assert (result.counts["sent"], result.counts["remaining"]) == (3, 2)
    assert {row["attempt_count"] for row in camp.rows() if row["status"] == "pending"} == {0}


class Stuck(StandInChannel):
    """A push service that answers when it is told to, like a look-up of a name that hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.done = Event(), Event()

    def send(self, recipient: str, message: Message, now: datetime) -> Outcome:
        assert self.go.wait(20)
        try:
            return super().send(recipient, message, now)
        finally:
            self.done.set()


def _settled(camp: Camp, status: str) -> bool:
    """Wait for an abandoned send to record its acceptance."""
    probe = Event()
    for _ in range(200):
        if camp.status() == status:
            return True
        probe.wait(0.02)
    return False


def test_an_attempt_is_abandoned_at_its_total_deadline(camp: Camp) -> None:
    stuck = Stuck()
    camp = camp.with_channels(pushover=stuck).with_settings(attempt_deadline=0.1)
    camp.true_alert()
    result = camp.drain()
    assert (result.outcome, result.counts["retried"]) == ("degraded", 1)
    assert camp.ended() == ("retry", "timeout")
    stuck.go.set()
    assert _settled(camp, "sent")
    assert camp.row()["provider_message_id"] == "m-1"
    assert camp.row()["attempt_count"] == 1


def test_an_abandoned_attempt_that_is_refused_late_changes_nothing(camp: Camp) -> None:
    stuck = Stuck()
    stuck.outcome = REJECTED
    camp = camp.with_channels(pushover=stuck).with_settings(attempt_deadline=0.1)
    camp.true_alert()
    camp.drain()
    stuck.go.set()
    assert stuck.done.wait(5)
    assert camp.ended() == ("retry", "timeout")


def test_an_abandoned_attempt_does_not_settle_a_newer_one(camp: Camp) -> None:
    stuck = Stuck()
    stuck_camp = camp.with_channels(pushover=stuck).with_settings(attempt_deadline=0.1)
    camp.true_alert()
    stuck_camp.drain()
    camp.clock.advance(minutes=2)
    newer = camp.claimed()
    stuck.go.set()
    assert stuck.done.wait(5)
    assert (camp.status(), camp.row()["claim_token"]) == ("sending", newer.token)
    assert acknowledge(camp.deps, newer, REJECTED) == "failed"


def test_a_slow_row_does_not_hold_up_the_others(camp: Camp) -> None:
    slow, others = Event(), Lock()
    sent: list[str] = []

    @dataclass
    class OneSlow(StandInChannel):
        def send(self, recipient: str, message: Message, now: datetime) -> Outcome:
            if recipient == KEY:
                assert slow.wait(20)
            with others:
                sent.append(recipient)
                if len(sent) == 4:
                    slow.set()
            return ACCEPTED

    camp = camp.with_channels(pushover=OneSlow())
    camp.true_alert(next_attempt_at=later(camp.clock(), hours=-1))
    _people(camp, 4)
    assert camp.drain(workers=4).counts["sent"] == 5
    assert sent[-1] == KEY


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_row_that_a_fellow_worker_gives_back_is_sent_in_the_same_run(camp: Camp) -> None:
    """One send at a time. While it is under way the fellow finds that out, and gives its row back only once the sender,
    done by then, has looked for another and passed over that row.
    """
    engine = camp.deps.database.engine
    first, sending, giving_back, looked = Lock(), Event(), Event(), Event()
    one_at_a_time = replace(SERVICE, concurrency=1)

    @dataclass
    class OneAtATime(StandInChannel):
        info: ChannelInfo = one_at_a_time

        def send(self, recipient: str, message: Message, now: datetime) -> Outcome:
            sending.set()
            assert giving_back.wait(20)
            return super().send(recipient, message, now)

    def before(_: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if LOOK in statement and not first.acquire(blocking=False):
            assert sending.wait(20)

    def after(_: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if LOOK in statement and giving_back.is_set():
            looked.set()

    def on_rollback(_: Any) -> None:
        giving_back.set()
        assert looked.wait(20)

    camp = camp.with_channels(pushover=OneAtATime())
    _people(camp, 2)
    event.listen(engine, "before_cursor_execute", before)
    event.listen(engine, "after_cursor_execute", after)
    event.listen(engine, "rollback", on_rollback)
    result = camp.drain(workers=2)
    assert (result.counts["sent"], result.counts["remaining"]) == (2, 0)


@pytest.mark.parametrize("reply", [Reply(Push.DRIP, 0.012), Reply(Push.SLOW, 0.6)], ids=["drip", "slow"])
def test_pushover_dripping_or_slow_is_abandoned_and_its_acceptance_settles(
    live_with: Callable[..., Live], reply: Reply
) -> None:
    live = live_with(attempt_deadline=0.2)
    camp = camp_of(live.deps, live.clock)
    camp.true_alert()
    live.push.script([reply])
    assert camp.drain().counts["retried"] == 1
    assert camp.ended() == ("retry", "timeout")
    assert _settled(camp, "sent")
    assert camp.row()["provider_message_id"] == live.push.messages[0].request
    camp.clock.advance(minutes=3)
    assert camp.drain().counts["claimed"] == 0
    assert len(live.push.attempts) == 1


# --- over the wire ---------------------------------------------------------------------------------------

WIRE: list[tuple[Push, str, str | None]] = [
    (Push.ACCEPT, "sent", None),
    (Push.NO_ID, "sent", None),
    (Push.BAD_TOKEN, "failed", "invalid_credentials"),
    (Push.BAD_USER, "failed", "invalid_recipient"),
    (Push.NO_MESSAGE, "failed", "malformed_payload"),
    (Push.QUOTA, "retry", "quota_exhausted"),
    (Push.BUSY, "retry", "rate_limited"),
    (Push.ERROR, "retry", "server_error"),
    (Push.UNAVAILABLE, "retry", "server_error"),
    (Push.REDIRECT, "failed", "rejected"),
    (Push.REQUEST_TIMEOUT, "retry", "timeout"),
    (Push.STATUS_ZERO, "retry", "unproven_acceptance"),
    (Push.PAGE, "retry", "unproven_acceptance"),
    (Push.EMPTY_OBJECT, "retry", "unproven_acceptance"),
    (Push.TRUNCATED, "retry", "unproven_acceptance"),
    (Push.ACCEPT_THEN_DROP, "retry", "transport_error"),
    (Push.RESET, "retry", "transport_error"),
    (Push.DROP_BEFORE_READING, "retry", "transport_error"),
]


def test_pushovers_answers_end_as_the_tables_say(live: Live, push_camp: Camp) -> None:
    ends: list[tuple[Push, str, str | None]] = []
    for push, _, _ in WIRE:
        with live.deps.database.transaction() as connection:
            connection.exec_driver_sql("DELETE FROM channel_states")
            connection.exec_driver_sql("DELETE FROM alert_history")
            connection.exec_driver_sql("DELETE FROM notification_outbox")
        push_camp.true_alert(f"{push.name}@example.org")
        live.push.script([push])
        push_camp.drain()
        ends.append((push, *push_camp.ended()))
        assert push_camp.row()["attempt_count"] == 1
    assert ends == WIRE
    assert len(live.push.attempts) == len(WIRE)  # no request was repeated below ours


def test_a_pushover_that_is_not_there_is_not_sent_to(live: Live, push_camp: Camp) -> None:
    push_camp.true_alert()
    live.push.close()
    push_camp.drain()
    assert push_camp.ended() == ("retry", "transport_error")


def test_no_transaction_is_open_while_the_push_service_answers(live: Live, push_camp: Camp) -> None:
    seen: list[tuple[int, list[str]]] = []

    def look(_: Request) -> None:
        seen.append((open_connections(live.deps.database), [row["status"] for row in push_camp.rows()]))

    push_camp.true_alert()
    live.push.on_request = look
    push_camp.drain()
    assert seen == [(0, ["sending"])]  # and the attempt is committed: another connection sees it


def test_pushover_gets_the_message_and_the_key_of_whom_it_is_for(live: Live, push_camp: Camp) -> None:
    for number in range(3):
        camper = push_camp.camper(f"p{number}@example.org", str(number) * 30)
        push_camp.results({str(number): july(10 + number) for number in range(3)})
        push_camp.alert(camper, {str(number): july(10 + number)})
    push_camp.drain(workers=4)
    told = {message.user: message.message for message in live.push.messages}
    assert {key: f"{10 + int(key[0])} Jul →" in text for key, text in told.items()} == dict.fromkeys(
        [str(number) * 30 for number in range(3)], True
    )


# --- two at once -----------------------------------------------------------------------------------------


def test_two_drains_at_once_send_each_row_once(live: Live, push_camp: Camp) -> None:
    _people(push_camp, 12)
    begun = Barrier(2)

    def another() -> RunResult:
        url = live.deps.database.engine.url.render_as_string(hide_password=False)
        with closing(Database(url)) as database:
            deps = replace(live.deps, database=database)
            begun.wait(10)
            return drain.run(deps, later(live.clock(), seconds=120))

    with ThreadPoolExecutor(2) as pool:
        results = [running.result() for running in [pool.submit(another), pool.submit(another)]]
    _each_once(live, push_camp, 12)
    assert sum(result.counts["sent"] for result in results) == 12
    assert [result.outcome for result in results] == ["success", "success"]


def test_two_processes_send_each_row_once_and_two_at_a_time(
    live: Live, push_camp: Camp, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key()
    object.__setattr__(live.deps, "vault", Vault([key]))
    _people(push_camp, 10)
    live.push.script([Reply(Push.SLOW, 0.03)] * 10)
    results = drain_twice_at_once(database_url, live.push.url, key, live.clock())
    if any(row["status"] == "pending" for row in push_camp.rows()):  # whoever found all places taken has left
        push_camp.drain()
    _each_once(live, push_camp, 10)
    assert [outcome for outcome, _ in results] == ["success", "success"]


def test_several_workers_never_open_more_than_two_connections(live: Live, push_camp: Camp) -> None:
    _people(push_camp, 8)
    live.push.script([Reply(Push.SLOW, 0.02)] * 8)
    push_camp.drain(workers=8)
    _each_once(live, push_camp, 8)
    assert live.push.peak == 2


def _each_once(live: Live, camp: Camp, count: int) -> None:
    assert [(row["status"], row["attempt_count"]) for row in camp.rows()] == [("sent", 1)] * count
    assert len(live.push.attempts) == len(live.push.messages) == count
    assert len({row["provider_message_id"] for row in camp.rows()}) == count
    assert live.push.peak <= 2


# --- rows that are broken --------------------------------------------------------------------------------


def _drained_to_the_end(camp: Camp) -> None:
    for _ in range(5):
        assert camp.drain().outcome in {"success", "degraded"}
        camp.clock.advance(minutes=2)


GARBAGE: list[Any] = [
    *(0, 7, True, "", "openings", [], [1], {}, {"openings": None}, {"openings": [{}]}, {"metadata": 1}),
    *(spoilt(GOOD, path, by) for path in paths_of(GOOD) if path for by in (7, {"a": 1}, ["x"], None)),
]


def test_garbage_neither_stops_the_run_nor_is_lost(camp: Camp) -> None:
    camper = camp.camper("garbage@example.org")
    early = later(camp.clock(), hours=-1)
    for number, payload in enumerate(GARBAGE):
        # Scans of their own: what cannot be read supersedes nothing, and nothing it.
        mine = replace(camper, scan_id=camp.scan(camper.user_id))
        camp.alert(mine, payload=payload, delivery_key=str(number), next_attempt_at=early)
    good = camp.true_alert()
    first = camp.drain()
    assert first.counts["claimed"] + first.counts["skipped"] == len(GARBAGE) + 1
    assert camp.status(good) == "sent"
    _drained_to_the_end(camp)
    ends = {(row["status"], row["error_category"]) for row in camp.rows() if row["id"] != good}
    assert ends <= {
        ("sent", None),  # a null where null may be
        ("failed", "malformed_payload"),
        ("failed", "internal_error"),
        ("skipped", "no_longer_available"),
        ("skipped", "filters_unmatched"),
    }
    assert all(row["attempt_count"] >= 1 for row in camp.rows() if row["status"] == "failed")


@given(payload=JSON.filter(lambda payload: payload is not None))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_ends(camp: Camp, payload: Any) -> None:
    with camp.deps.database.transaction() as connection:
        connection.execute(notification_outbox.delete())
        connection.execute(users.delete())
    camp.alert(camp.camper(), payload=payload)
    camp.drain()
    assert camp.ended() == ("failed", "malformed_payload")
    assert camp.row()["attempt_count"] == 1


def test_garbage_of_a_deleted_person_is_skipped(camp: Camp) -> None:
    camper = camp.camper()
    for number, payload in enumerate([7, [], {}, spoilt(GOOD, ("openings", 0, "campsite_id"), ["x"])]):
        camp.alert(camper, payload=payload, delivery_key=str(number))
    camp.delete(users, camper.user_id)
    result = camp.drain()
    assert (result.outcome, result.counts["skipped"]) == ("success", 4)


BREAKS: dict[str, Callable[[Camp], None]] = {
    "nights": lambda camp: camp.change(scan_results, nights={"never": "ever"}),
    "filters": lambda camp: camp.change(user_scans, preferred_types={"a": {}}, arrival_weekdays=7),
}


@pytest.mark.parametrize("what", sorted(BREAKS))
def test_a_row_that_makes_the_code_raise_is_charged_backed_off_and_fails(camp: Camp, what: str) -> None:
    camp.true_alert()
    BREAKS[what](camp)
    for attempt in range(1, 4):
        result = camp.drain()
        assert (result.outcome, result.counts["claimed"], result.counts["retried"]) == ("degraded", 1, 1)
        assert (camp.ended(), camp.row()["attempt_count"]) == (("retry", "internal_error"), attempt)
        assert camp.row()["next_attempt_at"] == later(camp.clock(), seconds=120)
        camp.clock.advance(minutes=2)
    assert camp.drain().counts["failed"] == 1
    assert (camp.ended(), camp.row()["attempt_count"]) == (("failed", "internal_error"), 4)
    assert camp.channel.sent == []


def test_a_row_that_makes_the_code_raise_does_not_stop_the_others(camp: Camp) -> None:
    broken = camp.target(date(2027, 7, 2))
    camp.results({"101": july(10)}, broken)
    with camp.deps.database.transaction() as connection:
        unreadable = update(scan_results).where(scan_results.c.target_id == broken).values(nights={"never": "ever"})
        connection.execute(unreadable)
    for number in range(3):
        camper = camp.camper(f"broken{number}@example.org", target_id=broken)
        camp.alert(camper, target_id=broken, next_attempt_at=later(camp.clock(), hours=-1))
    _people(camp, 3)
    result = camp.drain()
    assert (result.counts["sent"], result.counts["retried"], result.outcome) == (3, 3, "degraded")


@dataclass
class Breaking(StandInChannel):
    """An adapter with a bug that concerns one recipient."""

    def send(self, recipient: str, message: Message, now: datetime) -> Outcome:
        if recipient == KEY:
            raise RuntimeError(f"no plan for {recipient}")
        return super().send(recipient, message, now)


def test_a_channel_that_breaks_costs_that_row_an_attempt(camp: Camp) -> None:
    channel = Breaking()
    camp = camp.with_channels(pushover=channel)
    broken = camp.true_alert(next_attempt_at=later(camp.clock(), hours=-1))
    _people(camp, 3)
    result = camp.drain()
    assert (result.outcome, result.counts["sent"], result.counts["retried"]) == ("degraded", 3, 1)
    assert camp.ended(broken) == ("retry", "internal_error")
    for _ in range(3):
        camp.clock.advance(minutes=2)
        camp.drain()
    assert (camp.ended(broken), camp.row(broken)["attempt_count"]) == (("failed", "internal_error"), 4)


def test_a_channel_that_gives_nothing_back_has_sent_nothing(camp: Camp) -> None:
    camp.channel.outcome = None  # pyright: ignore[reportAttributeAccessIssue]  # an adapter written carelessly
    camp.true_alert()
    result = camp.drain()
    assert (camp.ended(), result.outcome) == (("retry", "internal_error"), "degraded")


# --- the run as others start it --------------------------------------------------------------------------


def test_a_degraded_drain_is_a_healthy_one(camp: Camp) -> None:
    camp.true_alert()
    camp.channel.outcome = FAULT
    assert wiring.run("drain", camp.deps, 120).outcome == "degraded"
    assert not camp.deps.runtime.unhealthy()
    assert camp.deps.runtime.running() == []


def test_deleting_what_a_row_refers_to_makes_the_next_drain_skip_it(camp: Camp) -> None:
    reasons = {users: "user_missing", user_scans: "scan_missing", notification_channels: "channel_missing"}
    people = {table: camp.camper(f"{table.name}@example.org") for table in reasons}
    rows = {table: camp.alert(camper) for table, camper in people.items()}
    other = camp.target(date(2027, 7, 3))
    followers = camp.camper("target@example.org", target_id=other)
    rows[unique_targets] = camp.alert(followers, target_id=other)
    camp.delete(users, people[users].user_id)
    camp.delete(user_scans, people[user_scans].scan_id)
    camp.delete(notification_channels, people[notification_channels].channel_id)
    camp.delete(unique_targets, other)
    assert camp.row(rows[users])["user_id"] is None
    assert camp.row(rows[user_scans])["scan_id"] is None
    assert camp.row(rows[unique_targets])["target_id"] is None
    camp.drain()
    ends = {table: camp.ended(row_id) for table, row_id in rows.items()}
    assert ends == {
        users: ("skipped", "user_missing"),
        user_scans: ("skipped", "scan_missing"),
        notification_channels: ("skipped", "channel_missing"),
        unique_targets: ("skipped", "scan_missing"),  # a target takes its scans along
    }
