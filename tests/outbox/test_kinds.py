"""A19: a kind of channel that is out of order is parked, probed and opened again; nobody else waits for it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from chalicelib.channels.contract import Message
from chalicelib.channels.outcomes import DeliveryErrorCategory as Category, Outcome, OutcomeClass
from chalicelib.db.tables import channel_states, notification_channels, notification_outbox, unique_targets
from sandbox.push_rules import Outcome as Push, Reply
from tests.outbox.camp import Camp, later
from tests.support.live import Live
from tests.support.standins import ACCEPTED, SERVICE, StandInChannel

FAULT = Outcome(OutcomeClass.TRANSIENT, Category.SERVER_ERROR)
TOKEN_REFUSED = Outcome(OutcomeClass.PERMANENT, Category.INVALID_CREDENTIALS, parks=True)
RECIPIENT_REFUSED = Outcome(OutcomeClass.PERMANENT, Category.INVALID_RECIPIENT)
TEXT_REFUSED = Outcome(OutcomeClass.PERMANENT, Category.MALFORMED_PAYLOAD)


@dataclass
class PerRecipient(StandInChannel):
    """A push service that refuses some."""

    refused: tuple[str, ...] = ()

    def send(self, recipient: str, message: Message, now: datetime) -> Outcome:
        super().send(recipient, message, now)
        return RECIPIENT_REFUSED if recipient in self.refused else ACCEPTED


def _people(camp: Camp, count: int) -> None:
    for number in range(count):
        camp.true_alert(f"p{number}@example.org", f"u-{number}", next_attempt_at=later(camp.clock(), seconds=-number))


def _statuses(camp: Camp) -> list[tuple[str, int]]:
    return sorted((row["status"], row["attempt_count"]) for row in camp.rows())


def _later(camp: Camp, **by: float) -> None:
    """Time passes, and checks go on."""
    camp.clock.advance(**by)
    camp.change(unique_targets, last_checked_at=camp.clock())


# --- what parks ------------------------------------------------------------------------------------------


def test_a_refused_application_token_parks_the_kind(camp: Camp) -> None:
    _people(camp, 3)
    camp.channel.outcome = TOKEN_REFUSED
    camp.drain()
    assert len(camp.channel.sent) == 1
    assert _statuses(camp) == [("failed", 1), ("pending", 0), ("pending", 0)]
    state = camp.kind_state()
    assert (state["parked_until"], state["error_category"]) == (later(camp.clock(), seconds=60), "invalid_credentials")


def test_a_spent_quota_parks_the_kind_until_its_reset(camp: Camp) -> None:
    _people(camp, 2)
    reset = later(camp.clock(), days=3)
    camp.channel.outcome = Outcome(OutcomeClass.TRANSIENT, Category.QUOTA_EXHAUSTED, retry_at=reset, parks=True)
    camp.drain()
    assert _statuses(camp) == [("pending", 0), ("retry", 1)]
    assert camp.kind_state()["parked_until"] == reset
    assert [row["next_attempt_at"] for row in camp.rows() if row["status"] == "retry"] == [reset]
    _later(camp, days=2, hours=23)
    assert camp.drain().counts["claimed"] == 0
    _later(camp, hours=1)
    camp.channel.outcome = ACCEPTED
    assert camp.drain().counts["sent"] == 2


def test_five_faults_in_a_row_park_the_kind(camp: Camp) -> None:
    _people(camp, 7)
    camp.channel.outcome = FAULT
    camp.drain()
    assert len(camp.channel.sent) == 5
    assert _statuses(camp) == [*[("pending", 0)] * 2, *[("retry", 1)] * 5]


def test_four_faults_do_not(camp: Camp) -> None:
    _people(camp, 4)
    camp.channel.outcome = FAULT
    camp.drain()
    assert camp.kind_state()["parked_until"] is None


def test_an_acceptance_between_them_breaks_the_row(camp: Camp) -> None:
    _people(camp, 9)
    outcomes = iter([*[FAULT] * 4, ACCEPTED, *[FAULT] * 4])

    def next_one() -> None:
        camp.channel.outcome = next(outcomes)

    camp.channel.while_sending = next_one
    camp.drain()
    assert len(camp.channel.sent) == 9
    assert (camp.kind_state()["faults"], camp.kind_state()["parked_until"]) == (4, None)


def test_an_acceptance_in_a_later_run_breaks_it_too(camp: Camp) -> None:
    for outcome in [FAULT, FAULT, ACCEPTED]:
        camp.change(notification_outbox, next_attempt_at=later(camp.clock(), days=1))
        camp.true_alert(f"{len(camp.rows())}@example.org")
        camp.channel.outcome = outcome
        camp.drain()
    assert camp.kind_state()["faults"] == 0


def test_a_message_that_is_refused_for_its_text_says_nothing_of_the_kind(camp: Camp) -> None:
    _people(camp, 7)
    camp.channel.outcome = TEXT_REFUSED
    camp.drain()
    assert len(camp.channel.sent) == 7


def test_a_fault_that_names_a_later_moment_parks_until_then(camp: Camp) -> None:
    _people(camp, 6)
    camp.channel.outcome = replace(FAULT, retry_at=later(camp.clock(), seconds=900))
    camp.drain()
    assert camp.kind_state()["parked_until"] == later(camp.clock(), seconds=900)


# --- parked, probed, opened ------------------------------------------------------------------------------


def test_rows_of_a_parked_kind_lose_no_attempt_however_often_a_drain_runs(camp: Camp) -> None:
    _people(camp, 3)
    camp.channel.outcome = TOKEN_REFUSED
    camp.drain()
    for _ in range(5):
        _later(camp, seconds=10)
        result = camp.drain()
        assert (result.counts["claimed"], result.counts["remaining"], result.outcome) == (0, 2, "success")
    assert _statuses(camp) == [("failed", 1), ("pending", 0), ("pending", 0)]


def test_one_probe_finds_out_and_the_others_follow_in_the_same_run(camp: Camp) -> None:
    _people(camp, 4)
    camp.channel.outcome = TOKEN_REFUSED
    camp.drain()
    _later(camp, seconds=60)
    camp.channel.outcome = ACCEPTED
    assert camp.drain().counts["sent"] == 3
    state = camp.kind_state()
    assert (state["parked_until"], state["faults"], state["backoff_seconds"]) == (None, 0, 0)


def test_a_probe_that_fails_costs_one_row_one_attempt_and_doubles_the_wait(camp: Camp) -> None:
    _people(camp, 12)
    camp.channel.outcome = FAULT
    camp.drain()
    waits: list[float] = []
    for probe in range(1, 8):
        waits.append((camp.kind_state()["parked_until"] - camp.clock()).total_seconds())
        camp.clock.now = camp.kind_state()["parked_until"]
        _later(camp, seconds=0)
        assert camp.drain(workers=4).counts["claimed"] == 1
        assert len(camp.channel.sent) == 5 + probe
    assert waits == [60, 120, 240, 480, 960, 1800, 1800]


def test_after_a_recovery_the_wait_begins_small_again(camp: Camp) -> None:
    _people(camp, 2)
    camp.insert(
        channel_states,
        {"kind": "pushover", "faults": 9, "backoff_seconds": 1800, "parked_until": camp.clock()},
    )
    outcomes = iter([ACCEPTED, TOKEN_REFUSED])

    def next_one() -> None:
        camp.channel.outcome = next(outcomes)

    camp.channel.while_sending = next_one
    camp.drain()
    assert camp.kind_state()["parked_until"] == later(camp.clock(), seconds=60)


def test_sends_that_were_under_way_when_the_kind_was_parked_do_not_lengthen_it(camp: Camp) -> None:
    _people(camp, 2)
    first, second = camp.claimed(), camp.claimed()
    camp.acknowledge(first, TOKEN_REFUSED)
    camp.acknowledge(second, TOKEN_REFUSED)
    state = camp.kind_state()
    assert (state["backoff_seconds"], state["parked_until"]) == (60, later(camp.clock(), seconds=60))


def test_a_parking_is_told_to_the_operator_once(camp: Camp, caplog: pytest.LogCaptureFixture) -> None:
    _people(camp, 3)
    camp.channel.outcome = TOKEN_REFUSED
    for _ in range(3):
        camp.drain()
        _later(camp, hours=1)
    told = [record for record in caplog.records if record.getMessage() == "a kind of channel was parked"]
    assert [record.levelname for record in told] == ["ERROR"]


def test_a_row_that_is_no_longer_true_is_not_told_after_a_park(camp: Camp) -> None:
    _people(camp, 1)
    camp.insert(channel_states, {"kind": "pushover", "parked_until": later(camp.clock(), hours=1)})
    camp.results({})
    assert camp.drain().counts["skipped"] == 0
    _later(camp, hours=1)
    assert camp.drain().counts["skipped"] == 1


# --- others ----------------------------------------------------------------------------------------------


def test_another_kind_is_not_held_up(camp: Camp) -> None:
    pigeon = StandInChannel(info=replace(SERVICE, kind="pigeon", concurrency=None))
    both = camp.with_channels(pushover=camp.channel, pigeon=pigeon)
    _people(both, 3)
    for number in range(3):
        camper = both.camper(f"pigeon{number}@example.org", f"u-pigeon-{number}")
        both.change_row(notification_channels, camper.channel_id, kind="pigeon")
        both.alert(camper, next_attempt_at=later(both.clock(), seconds=-number))
    camp.channel.outcome = TOKEN_REFUSED
    both.drain(workers=4)
    assert len(pigeon.sent) == 3
    assert len(camp.channel.sent) <= 2  # two may be under way before the first is refused
    assert sum(row["attempt_count"] for row in both.rows() if row["channel_kind"] == "pushover") <= 2


def test_a_kind_that_is_full_does_not_hold_up_another(camp: Camp) -> None:
    pigeon = StandInChannel(info=replace(SERVICE, kind="pigeon", concurrency=None))
    both = camp.with_channels(pushover=camp.channel, pigeon=pigeon)
    busy = both.camper("busy@example.org")
    for _ in range(2):
        both.sending(busy)
    _people(both, 2)
    camper = both.camper("pigeon@example.org", "u-pigeon")
    both.change_row(notification_channels, camper.channel_id, kind="pigeon")
    both.alert(camper)
    result = both.drain()
    assert (len(pigeon.sent), camp.channel.sent) == (1, [])
    assert result.counts["remaining"] == 2


def test_five_faults_park_a_kind_without_a_limit_of_its_own_too(camp: Camp) -> None:
    pigeon = StandInChannel(info=replace(SERVICE, kind="pigeon", concurrency=None), outcome=FAULT)
    camp = camp.with_channels(pigeon=pigeon)
    _people(camp, 7)
    camp.change(notification_channels, kind="pigeon")
    camp.drain()
    assert len(pigeon.sent) == 5
    assert camp.kind_state()["parked_until"] == later(camp.clock(), seconds=60)


def test_a_token_that_is_refused_at_once_parks_a_kind_that_was_never_in_trouble(camp: Camp) -> None:
    pigeon = StandInChannel(info=replace(SERVICE, kind="pigeon", concurrency=None), outcome=TOKEN_REFUSED)
    camp = camp.with_channels(pigeon=pigeon)
    _people(camp, 3)
    camp.change(notification_channels, kind="pigeon")
    camp.drain()
    assert len(pigeon.sent) == 1
    assert camp.kind_state()["parked_until"] == later(camp.clock(), seconds=60)


# --- recipients ------------------------------------------------------------------------------------------


def test_a_recipient_that_is_refused_again_and_again_is_no_longer_tried(camp: Camp) -> None:
    camper = camp.camper()
    camp.channel.outcome = RECIPIENT_REFUSED
    for number in range(3):
        camp.alert(camper, delivery_key=str(number))
        camp.drain()
    row = camp.channel_row(camper.channel_id)
    assert (row["enabled"], row["disabled_reason"]) == (False, "invalid_recipient")
    row_id = camp.alert(camper, delivery_key="another")
    camp.drain()
    assert camp.ended(row_id) == ("skipped", "channel_disabled")
    assert len(camp.channel.sent) == 3


def test_one_refusal_does_not_take_a_channel_out_of_use(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper)
    camp.channel.outcome = RECIPIENT_REFUSED
    camp.drain()
    assert camp.channel_row(camper.channel_id)["enabled"]


def test_an_acceptance_forgives_a_recipient(camp: Camp) -> None:
    camper = camp.camper()
    for number, outcome in enumerate([RECIPIENT_REFUSED, RECIPIENT_REFUSED, ACCEPTED, RECIPIENT_REFUSED]):
        camp.clock.advance(seconds=1)
        camp.channel.outcome = outcome
        camp.alert(camper, delivery_key=str(number))
        camp.drain()
    row = camp.channel_row(camper.channel_id)
    assert (row["enabled"], row["refusals"]) == (True, 1)


def test_one_persons_refused_key_does_not_hold_up_the_others(camp: Camp) -> None:
    channel = PerRecipient(refused=("u-bad",))
    camp = camp.with_channels(pushover=channel)
    bad = camp.camper("bad@example.org", "u-bad")
    for number in range(10):
        mine = replace(bad, scan_id=camp.scan(bad.user_id))
        camp.alert(mine, delivery_key=str(number), next_attempt_at=later(camp.clock(), hours=-1))
    _people(camp, 3)
    camp.drain()
    sent = [recipient for recipient, _ in channel.sent]
    assert sent.count("u-bad") <= 3
    assert len(sent) - sent.count("u-bad") == 3
    assert camp.kind_state()["parked_until"] is None


# --- over the wire ---------------------------------------------------------------------------------------


def test_pushovers_own_answers_park_it(live: Live, push_camp: Camp) -> None:
    _three_keys(push_camp)
    live.push.script([Push.BAD_TOKEN])
    push_camp.drain()
    assert len(live.push.attempts) == 1
    assert push_camp.kind_state()["error_category"] == "invalid_credentials"


def test_pushovers_quota_parks_it_until_the_reset_that_it_names(live: Live, push_camp: Camp) -> None:
    reset = live.clock().replace(microsecond=0) + timedelta(days=9)
    _three_keys(push_camp)
    live.push.script([Reply(Push.QUOTA, reset=reset)])
    push_camp.drain()
    assert len(live.push.attempts) == 1
    state: Any = push_camp.kind_state()
    assert (state["parked_until"], state["error_category"]) == (reset, "quota_exhausted")
    assert len(live.push.messages) == 0


def test_pushover_being_busy_is_one_rows_retry(live: Live, push_camp: Camp) -> None:
    _three_keys(push_camp)
    live.push.script([Reply(Push.BUSY, retry_after=300)])
    push_camp.drain()
    (retry,) = [row for row in push_camp.rows() if row["status"] == "retry"]
    assert retry["next_attempt_at"] == later(live.clock(), seconds=300)
    assert len(live.push.messages) == 2


def _three_keys(camp: Camp) -> None:
    for number in range(3):
        camp.true_alert(f"p{number}@example.org", f"{number}" * 30)
