"""A16: an attempt that nobody ended is found again once its lease is over, and counts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.db.tables import notification_outbox
from chalicelib.outbox.drain import recover
from chalicelib.outbox.states import Status
from tests.outbox.camp import Camp
from tests.support.standins import ACCEPTED


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_an_interrupted_attempt_waits_for_another_and_is_due_at_once(camp: Camp, attempts: int) -> None:
    camp.sending(camp.camper(), attempt_count=attempts, next_attempt_at=camp.clock())
    assert recover(camp.deps, camp.clock()) == 1
    row = camp.row()
    assert (row["status"], row["error_category"], row["attempt_count"]) == ("retry", "interrupted", attempts)
    assert (row["next_attempt_at"], row["finished_at"]) == (camp.clock(), None)


def test_four_interrupted_attempts_are_all_there_are(camp: Camp) -> None:
    camp.sending(camp.camper(), attempt_count=4, next_attempt_at=camp.clock())
    assert recover(camp.deps, camp.clock()) == 1
    assert camp.ended() == ("failed", "attempts_exhausted")
    assert camp.row()["finished_at"] == camp.clock()
    assert (camp.story()["outcome"], camp.story()["attempt_count"]) == ("failed", 4)


@pytest.mark.parametrize("attempts", [1, 4])
def test_an_attempt_whose_lease_runs_is_left_alone(camp: Camp, attempts: int) -> None:
    camp.sending(camp.camper(), attempt_count=attempts, next_attempt_at=camp.clock() + timedelta(seconds=1))
    before = dict(camp.row())
    assert recover(camp.deps, camp.clock()) == 0
    assert dict(camp.row()) == before


@pytest.mark.parametrize("state", ["pending", "retry", "sent", "skipped", "failed"])
def test_only_a_row_that_is_being_sent_is_recovered(camp: Camp, state: str) -> None:
    finished: Any = camp.clock() if state in {"sent", "skipped", "failed"} else None
    past = camp.clock() - timedelta(days=1)
    camp.alert(camp.camper(), status=state, attempt_count=4, finished_at=finished, next_attempt_at=past)
    before = dict(camp.row())
    assert recover(camp.deps, camp.clock()) == 0
    assert dict(camp.row()) == before


def test_every_drain_begins_with_it_and_tries_the_row_in_the_same_run(camp: Camp) -> None:
    """On a clock that moves, as clocks do."""
    camp.sending(camp.camper(), next_attempt_at=camp.clock())
    result = _on_a_moving_clock(camp).drain()
    assert (result.counts["recovered"], result.counts["claimed"], result.counts["sent"]) == (1, 1, 1)
    assert (camp.status(), camp.row()["attempt_count"]) == ("sent", 2)


def test_interrupted_attempts_count_towards_the_four(camp: Camp) -> None:
    """Four processes die one after another, and there is no fifth attempt."""
    camp.true_alert()
    for _ in range(4):
        camp.claimed()
        camp.clock.now = camp.row()["next_attempt_at"]
        recover(camp.deps, camp.clock())
    assert camp.ended() == ("failed", "attempts_exhausted")
    assert camp.row()["attempt_count"] == 4
    assert camp.drain().counts["claimed"] == 0
    assert camp.channel.sent == []


def test_an_interrupted_attempt_that_was_accepted_after_all_is_settled(camp: Camp) -> None:
    camp.true_alert()
    claim = camp.claimed()
    camp.clock.now = camp.row()["next_attempt_at"]
    recover(camp.deps, camp.clock())
    assert camp.acknowledge(claim, ACCEPTED) is Status.SENT
    assert camp.drain().counts["claimed"] == 0


def test_an_acceptance_after_the_last_attempt_was_given_up_comes_too_late(camp: Camp) -> None:
    camp.true_alert(status="retry", attempt_count=3)
    claim = camp.claimed()
    camp.clock.now = camp.row()["next_attempt_at"]
    recover(camp.deps, camp.clock())
    assert camp.acknowledge(claim, ACCEPTED) is None
    assert camp.ended() == ("failed", "attempts_exhausted")


def test_many_are_recovered_at_once(camp: Camp) -> None:
    camper = camp.camper()
    for attempts in (1, 2, 3, 4, 4):
        camp.sending(camper, attempt_count=attempts, next_attempt_at=camp.clock() - timedelta(minutes=1))
    assert recover(camp.deps, camp.clock()) == 5
    assert recover(camp.deps, camp.clock()) == 0
    assert sorted(row["status"] for row in camp.rows()) == ["failed", "failed", "retry", "retry", "retry"]


def test_a_recovered_row_is_looked_at_again_before_it_is_told(camp: Camp) -> None:
    camp.sending(camp.camper(), next_attempt_at=camp.clock())
    camp.results({})
    result = camp.drain()
    assert (result.counts["recovered"], result.counts["skipped"]) == (1, 1)
    assert camp.ended() == ("skipped", "no_longer_available")
    assert camp.row()["attempt_count"] == 1
    assert camp.count(notification_outbox) == 1


def _on_a_moving_clock(camp: Camp) -> Camp:
    """Every look at the clock is a millisecond after the one before."""

    def clock() -> Any:
        camp.clock.advance(milliseconds=1)
        return camp.clock.now

    return replace(camp, deps=replace(camp.deps, clock=clock))
