"""A21: what is over goes, batch by batch; what waits stays, however old."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, text

from chalicelib.db.tables import alert_history, notification_outbox, scan_results, unique_targets, user_scans
from chalicelib.history import RunResult
from chalicelib.outbox import prune
from tests.outbox.camp import Camp, july, later


def _prune(camp: Camp, seconds: float = 60) -> RunResult:
    return prune.run(camp.deps, later(camp.clock(), seconds=seconds))


@pytest.mark.parametrize("state", ["sent", "skipped", "failed"])
@pytest.mark.parametrize(("age", "left"), [(timedelta(hours=24), 0), (timedelta(hours=24, seconds=-1), 1)])
def test_a_terminal_row_goes_a_day_after_its_end(camp: Camp, state: str, age: timedelta, left: int) -> None:
    camp.alert(camp.camper(), status=state, finished_at=camp.clock() - age)
    result = _prune(camp)
    assert camp.count(notification_outbox) == left
    assert (result.job, result.outcome, result.counts) == ("prune", "success", {"deleted": 1 - left})


@pytest.mark.parametrize("state", ["pending", "retry", "sending"])
def test_a_row_that_is_not_terminal_is_never_deleted(camp: Camp, state: str) -> None:
    ages = later(camp.clock(), days=-1000)
    camp.alert(camp.camper(), status=state, created_at=ages, next_attempt_at=ages)
    assert _prune(camp).counts["deleted"] == 0
    assert camp.status() == state


def test_a_day_counts_from_the_end_and_not_from_the_beginning(camp: Camp) -> None:
    camp.alert(camp.camper(), status="sent", created_at=later(camp.clock(), days=-9), finished_at=camp.clock())
    assert _prune(camp).counts["deleted"] == 0


def test_batches_each_commit(camp: Camp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "BATCH", 2)
    camper = camp.camper()
    for _ in range(5):
        camp.alert(camper, status="sent", finished_at=later(camp.clock(), days=-2))
    left: list[int] = []
    event.listen(camp.deps.database.engine, "commit", lambda _: left.append(1))
    assert _prune(camp).counts["deleted"] == 5
    assert camp.count(notification_outbox) == 0
    assert len(left) >= 3


def test_a_prune_that_runs_out_of_time_leaves_the_rest_to_the_next(camp: Camp) -> None:
    camp.alert(camp.camper(), status="sent", finished_at=later(camp.clock(), days=-2))
    assert _prune(camp, seconds=0).counts["deleted"] == 0
    assert _prune(camp).counts["deleted"] == 1


def test_two_prunes_are_as_good_as_one(camp: Camp) -> None:
    camp.alert(camp.camper(), status="sent", finished_at=later(camp.clock(), days=-2))
    assert [_prune(camp).counts["deleted"], _prune(camp).counts["deleted"]] == [1, 0]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_terminal_rows_are_found_by_index(camp: Camp) -> None:
    query = "SELECT id FROM notification_outbox WHERE finished_at <= '2027-01-01' LIMIT 500"
    with camp.deps.database.reading() as connection:
        plan = " ".join(str(row) for row in connection.execute(text(f"EXPLAIN QUERY PLAN {query}")))
    assert "ix_notification_outbox_finished_at" in plan


# --- what was told ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("age", "left"), [(timedelta(days=90), 0), (timedelta(days=90, seconds=-1), 1)])
def test_what_a_camper_was_told_is_readable_for_ninety_days(camp: Camp, age: timedelta, left: int) -> None:
    story: dict[str, Any] = {"outcome": "sent", "attempt_count": 1, "nights": {"101": ["2027-07-10"]}}
    camp.insert(alert_history, {"id": uuid4(), **story, "finished_at": camp.clock() - age})
    _prune(camp)
    assert camp.count(alert_history) == left


def test_a_story_outlives_its_row(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper)
    camp.drain()
    camp.clock.advance(hours=25)
    _prune(camp)
    assert camp.count(notification_outbox) == 0
    assert (camp.story()["scan_id"], camp.told()) == (camper.scan_id, {"101": ["2027-07-10"]})


def test_a_pruned_row_does_not_come_back_as_a_new_one(camp: Camp) -> None:
    camp.alert(camp.camper())
    camp.drain()
    camp.clock.advance(hours=25)
    _prune(camp)
    assert camp.drain().counts["claimed"] == 0
    assert len(camp.channel.sent) == 1


# --- what nobody follows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "left"), [(29, 1), (30, 0), (300, 0)])
def test_a_target_that_nobody_follows_goes_after_thirty_days_with_its_results(camp: Camp, days: int, left: int) -> None:
    camp.change(
        unique_targets, last_attempt_at=later(camp.clock(), days=-days), created_at=later(camp.clock(), days=-400)
    )
    _prune(camp)
    assert (camp.count(unique_targets), camp.count(scan_results)) == (left, left)


def test_a_target_that_was_never_tried_counts_from_its_making(camp: Camp) -> None:
    camp.change(unique_targets, last_attempt_at=None, created_at=later(camp.clock(), days=-30))
    _prune(camp)
    assert camp.count(unique_targets) == 0


@pytest.mark.parametrize("active", [True, False])
def test_a_target_that_somebody_follows_stays_though_paused(camp: Camp, active: bool) -> None:
    camp.camper(is_active=active)
    camp.change(
        unique_targets, last_attempt_at=later(camp.clock(), days=-400), created_at=later(camp.clock(), days=-400)
    )
    _prune(camp)
    assert (camp.count(unique_targets), camp.count(scan_results)) == (1, 1)


def test_what_still_waits_for_a_pruned_target_is_skipped(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper, {"101": july(10)})
    camp.delete(user_scans, camper.scan_id)
    camp.change(unique_targets, last_attempt_at=later(camp.clock(), days=-31))
    _prune(camp)
    assert camp.count(unique_targets) == 0
    assert camp.status() == "pending"
    camp.drain()
    assert camp.ended() == ("skipped", "scan_missing")
