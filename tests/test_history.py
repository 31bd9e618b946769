"""A22: what a process knows of its own work: fields, caps, and nothing that outlives it."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from chalicelib.history import MAX_ATTEMPTS, JobAttempt, RunResult, RuntimeState, iso

NOW = datetime(2027, 7, 1, 12, tzinfo=UTC)


def attempt(at: datetime = NOW, number: int = 1) -> JobAttempt:
    return JobAttempt(uuid4(), "check", number, at - timedelta(seconds=1), at, "success")


def test_an_item_has_the_listed_fields_and_nothing_else() -> None:
    item = attempt().to_json()
    assert list(item) == [
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
    ]
    assert (item["started_at"], item["finished_at"]) == ("2027-07-01T11:59:59Z", "2027-07-01T12:00:00Z")
    assert (item["provider"], item["target_id"]) == (None, None)


def test_each_event_has_its_own_id() -> None:
    assert attempt().event_id != attempt().event_id


def test_at_most_a_thousand_attempts_are_kept_the_newest_ones() -> None:
    state = RuntimeState()
    for number in range(1, 1203):
        state.add(attempt(number=number))
    assert MAX_ATTEMPTS == 1000
    assert [kept.attempt for kept in state.attempts()] == list(range(203, 1203))


def test_attempts_older_than_24_hours_are_forgotten() -> None:
    state = RuntimeState()
    state.add(attempt(NOW - timedelta(hours=24, seconds=1), 1))
    state.add(attempt(NOW - timedelta(hours=23), 2))
    state.add(attempt(NOW, 3))
    assert [kept.attempt for kept in state.attempts()] == [2, 3]


def test_a_job_begins_once_until_it_ends() -> None:
    state, target = RuntimeState(), uuid4()
    assert [state.begin(target), state.begin(target), state.begin(uuid4())] == [True, False, True]
    state.end(target)
    assert state.begin(target)


def test_a_job_that_broke_is_unhealthy_since_then_until_a_run_of_it_is_well() -> None:
    state = RuntimeState()
    for minute, healthy in enumerate([False, False]):
        state.run_started("drain")
        state.run_finished("drain", at=NOW + timedelta(minutes=minute), healthy=healthy)
    state.run_started("detect")
    state.run_finished("detect", at=NOW, healthy=True)
    assert state.unhealthy() == {"drain": NOW}
    state.run_finished("drain", at=NOW, healthy=True)
    assert state.unhealthy() == {}


def test_running_functions_are_known() -> None:
    state = RuntimeState()
    state.run_started("detect")
    state.run_started("detect")
    state.run_started("drain")
    state.run_finished("detect", at=NOW, healthy=True)
    state.run_finished("drain", at=NOW, healthy=True)
    assert state.running() == ["detect"]


def test_a_new_state_knows_nothing() -> None:
    state = RuntimeState()
    assert (state.attempts(), state.running(), state.unhealthy(), state.last_discovery) == ([], [], {}, None)


def test_a_result_has_the_pinned_shape() -> None:
    run_id = uuid4()
    result = RunResult("detect", run_id, NOW, NOW + timedelta(seconds=2), "success", {"openings": 1}, (attempt(),))
    told = result.to_json()
    assert list(told) == ["job", "run_id", "started_at", "finished_at", "outcome", "counts", "history"]
    assert (told["job"], told["run_id"], told["counts"]) == ("detect", str(run_id), {"openings": 1})
    assert (told["started_at"], told["finished_at"]) == ("2027-07-01T12:00:00Z", "2027-07-01T12:00:02Z")
    assert len(told["history"]) == 1


def test_times_are_said_in_utc() -> None:
    assert iso(datetime.fromisoformat("2027-07-01T14:00:00+02:00")) == "2027-07-01T12:00:00Z"
