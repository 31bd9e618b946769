"""A21: what is over goes, batch by batch; what waits stays, however old."""

from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Table, event, select

from chalicelib.db.tables import (
    alert_history,
    api_tokens,
    glimpses,
    idempotency_keys,
    notification_outbox,
    scan_results,
    sessions,
    sign_in_limits,
    unique_targets,
    user_scans,
)
from chalicelib.history import RunResult
from chalicelib.outbox import prune
from tests.heart.test_queries import asked
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


FOUND_BY = {
    notification_outbox: "ix_notification_outbox_finished_at",
    alert_history: "ix_alert_history_finished_at",
    sessions: "ix_sessions_expires_at",
    sign_in_limits: "ix_sign_in_limits_window_ends_at",
    api_tokens: "ix_api_tokens_revoked_at",
    idempotency_keys: "ix_idempotency_keys_begun_at",
    glimpses: "ix_glimpses_fetched_at",
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_what_may_go_is_found_by_index(camp: Camp) -> None:
    with asked(camp.deps.database) as found:
        _prune(camp)
    with camp.deps.database.reading() as connection:
        plans = [
            " ".join(str(row) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters))
            for statement, parameters in found.statements
        ]
    for table, index in FOUND_BY.items():
        (plan,) = [plan for plan in plans if f"SEARCH {table.name} " in plan]
        assert index in plan


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


# --- what the edge remembers -----------------------------------------------------------------------------

DIGEST = "0" * 64


def _token(user_id: UUID, digest: str = DIGEST, **columns: Any) -> dict[str, Any]:
    return {"id": uuid4(), "user_id": user_id, "name": "phone", "kind": "read_only", "token_hash": digest, **columns}


def _edge_row(table: Table, user_id: UUID, moment: datetime) -> dict[str, Any]:
    """A row of which prune looks at `moment`."""
    return {
        sessions: {
            "id": uuid4(),
            "user_id": user_id,
            "token_hash": uuid4().hex,
            "created_at": later(moment, days=-30),
            "expires_at": moment,
        },
        sign_in_limits: {"subject": f"account {uuid4().hex}", "failures": 3, "window_ends_at": moment},
        api_tokens: _token(user_id, uuid4().hex, created_at=later(moment, days=-30), revoked_at=moment),
        idempotency_keys: {"user_id": user_id, "key": uuid4().hex, "request_hash": DIGEST, "begun_at": moment},
        glimpses: {
            "provider": "recreation_gov",
            "campground_id": uuid4().hex,
            "month": date(2027, 7, 1),
            "fetched_at": moment,
            "campsites": {},
        },
    }[table]


EDGE = {
    sessions: timedelta(),
    sign_in_limits: timedelta(),
    api_tokens: timedelta(days=30),
    idempotency_keys: timedelta(hours=24),
    glimpses: timedelta(hours=1),
}
"""For how long it is kept."""


@pytest.mark.parametrize("table", EDGE, ids=lambda table: table.name)
@pytest.mark.parametrize(("second", "left"), [(0, 0), (1, 1)])
def test_what_the_edge_remembers_goes_when_nothing_needs_it(camp: Camp, table: Table, second: int, left: int) -> None:
    user_id = camp.camper().user_id
    camp.insert(table, _edge_row(table, user_id, camp.clock() - EDGE[table] + timedelta(seconds=second)))
    assert _prune(camp).counts["deleted"] == 1 - left
    assert camp.count(table) == left


@pytest.mark.parametrize("table", EDGE, ids=lambda table: table.name)
def test_every_row_goes_however_many_batches_it_takes_and_no_other(
    camp: Camp, monkeypatch: pytest.MonkeyPatch, table: Table
) -> None:
    monkeypatch.setattr(prune, "BATCH", 2)
    user_id, over = camp.camper().user_id, camp.clock() - EDGE[table]
    for moment in (over, over, over, later(over, days=-100), later(over, days=-100), later(over, seconds=1)):
        camp.insert(table, _edge_row(table, user_id, moment))
    assert _prune(camp).counts["deleted"] == 5
    assert camp.count(table) == 1


def test_of_a_key_in_several_parts_all_must_agree(camp: Camp) -> None:
    """Two months of one campground, one key of two people: the one that is over goes, the other stays."""
    old, new = later(camp.clock(), days=-2), camp.clock()
    month = _edge_row(glimpses, uuid4(), old)
    camp.insert(glimpses, month)
    camp.insert(glimpses, {**month, "month": date(2027, 8, 1), "fetched_at": new})
    ann, bob = camp.camper().user_id, camp.camper("bob@example.org").user_id
    request = {**_edge_row(idempotency_keys, ann, old), "key": "once"}
    camp.insert(idempotency_keys, request)
    camp.insert(idempotency_keys, {**request, "user_id": bob, "begun_at": new})
    assert _prune(camp).counts["deleted"] == 2
    with camp.deps.database.reading() as connection:
        assert connection.execute(select(glimpses.c.month)).scalars().all() == [date(2027, 8, 1)]
        assert connection.execute(select(idempotency_keys.c.user_id)).scalars().all() == [bob]


def test_a_token_that_is_in_use_stays_however_old(camp: Camp) -> None:
    camp.insert(api_tokens, _token(camp.camper().user_id, created_at=later(camp.clock(), days=-1000)))
    assert _prune(camp).counts["deleted"] == 0
    assert camp.count(api_tokens) == 1


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_row_that_somebody_holds_is_left_to_the_next_prune(camp: Camp) -> None:
    camp.insert(glimpses, _edge_row(glimpses, uuid4(), later(camp.clock(), days=-2)))
    camp.insert(glimpses, _edge_row(glimpses, uuid4(), later(camp.clock(), days=-2)))
    with camp.deps.database.transaction() as holder:
        holder.execute(select(glimpses.c.month).limit(1).with_for_update())
        assert _prune(camp).counts["deleted"] == 1
    assert _prune(camp).counts["deleted"] == 1


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
