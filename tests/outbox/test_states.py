"""A10: every pair of states is a move that is allowed, or one that is refused; the database agrees."""

from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.exc import DBAPIError

from chalicelib.db.tables import notification_outbox
from chalicelib.outbox.states import MOVES, TERMINAL, MoveRefused, SkipReason, Status, move
from tests.outbox.camp import Camp

STATES = ["pending", "sending", "retry", "sent", "skipped", "failed"]
ENDS = ["sent", "skipped", "failed"]

# The page's own words, and not the code's table.
ALLOWED = {
    ("pending", "sending"),
    ("retry", "sending"),
    ("sending", "sent"),
    ("sending", "retry"),
    ("sending", "failed"),
    ("sending", "skipped"),
    ("pending", "skipped"),
    ("retry", "skipped"),
}
WITH_THE_TOKEN = {("retry", "sent")}
REFUSED = sorted(set(product(STATES, STATES)) - ALLOWED - WITH_THE_TOKEN)

SKIPPED = {
    *("user_missing", "scan_missing", "target_missing", "not_owner", "scanning_disabled", "not_invited"),
    *("scan_inactive", "target_changed", "dates_passed", "filters_unmatched", "no_longer_available", "stale"),
    *("superseded", "channel_missing", "channel_disabled", "credentials_missing", "app_credentials_missing"),
}


def test_the_states_are_the_pages() -> None:
    assert sorted(Status) == sorted(STATES)
    assert sorted(TERMINAL) == sorted(ENDS)
    assert sorted(MOVES) == sorted(STATES)


def test_the_reasons_to_skip_are_the_pages() -> None:
    assert set(SkipReason) == SKIPPED


@pytest.mark.parametrize(("source", "to"), REFUSED)
def test_a_move_that_is_not_in_the_table_is_refused(source: str, to: str) -> None:
    with pytest.raises(MoveRefused):
        move([Status(source)], Status(to))
    with pytest.raises(MoveRefused):
        move([Status(source)], Status(to), token=uuid4())


@pytest.mark.parametrize(("source", "to"), REFUSED)
def test_one_refused_source_refuses_the_whole_move(source: str, to: str) -> None:
    allowed = [Status(one) for one, other in sorted(ALLOWED) if other == to]
    with pytest.raises(MoveRefused):
        move([*allowed, Status(source)], Status(to))


def test_a_late_acceptance_is_a_move_for_whoever_presents_a_token_alone() -> None:
    with pytest.raises(MoveRefused):
        move([Status.RETRY], Status.SENT)
    with pytest.raises(MoveRefused):
        move([Status.SENDING, Status.RETRY], Status.SENT)
    move([Status.SENDING, Status.RETRY], Status.SENT, token=uuid4())


@pytest.mark.parametrize(("source", "to"), sorted(ALLOWED | WITH_THE_TOKEN))
def test_an_allowed_move_moves_the_row_from_that_state_and_from_no_other(camp: Camp, source: str, to: str) -> None:
    camper, token = camp.camper(), uuid4()
    rows = {state: camp.alert(camper, claim_token=token, **_in(camp, state)) for state in STATES}
    guard = token if (source, to) in WITH_THE_TOKEN else None
    with camp.deps.database.transaction() as connection:
        moved = connection.execute(move([Status(source)], Status(to), token=guard, **_end(camp, to))).rowcount
    assert moved == 1
    assert {state: camp.status(row_id) for state, row_id in rows.items()} == {
        state: to if state == source else state for state in STATES
    }


@pytest.mark.parametrize(("source", "to"), sorted(ALLOWED | WITH_THE_TOKEN))
def test_a_move_with_another_token_moves_nothing(camp: Camp, source: str, to: str) -> None:
    camp.alert(camp.camper(), claim_token=uuid4(), **_in(camp, source))
    with camp.deps.database.transaction() as connection:
        moved = connection.execute(move([Status(source)], Status(to), token=uuid4(), **_end(camp, to))).rowcount
    assert (moved, camp.status()) == (0, source)


# --- the database ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "finished"), list(product(STATES, [True, False])))
def test_a_row_is_finished_exactly_in_a_terminal_state(camp: Camp, state: str, finished: bool) -> None:
    camper = camp.camper()
    columns: dict[str, Any] = {"status": state, "finished_at": camp.clock() if finished else None}
    if finished == (state in ENDS):
        camp.alert(camper, **columns)
    else:
        with pytest.raises(DBAPIError):
            camp.alert(camper, **columns)


@pytest.mark.parametrize(
    "wrong", [{"status": "dead"}, {"status": ""}, {"attempt_count": -1}, {"next_attempt_at": None}, {"payload": None}]
)
def test_the_database_refuses_a_row_that_cannot_be(camp: Camp, wrong: dict[str, Any]) -> None:
    camper = camp.camper()
    with pytest.raises(DBAPIError):
        camp.alert(camper, **wrong)
    assert camp.rows() == []


def test_a_new_row_is_pending_and_untried(camp: Camp) -> None:
    camp.alert(camp.camper())
    row = camp.row()
    assert (row["status"], row["attempt_count"], row["claim_token"], row["finished_at"]) == ("pending", 0, None, None)


def test_an_intent_is_one_of_its_detection_scan_and_key(camp: Camp) -> None:
    camper, detection = camp.camper(), uuid4()
    camp.alert(camper, detection_id=detection)
    camp.alert(camper, detection_id=detection, delivery_key="101")
    camp.alert(camper, detection_id=uuid4())
    with pytest.raises(DBAPIError):
        camp.alert(camper, detection_id=detection)
    assert camp.count(notification_outbox) == 3


def test_intents_of_deleted_scans_do_not_stand_in_each_others_way(camp: Camp) -> None:
    camper, detection = camp.camper(), uuid4()
    for _ in range(2):
        camp.alert(camper, detection_id=detection, scan_id=None)
    assert camp.count(notification_outbox) == 2


def _in(camp: Camp, state: str) -> dict[str, Any]:
    return {"status": state, **_end(camp, state)}


def _end(camp: Camp, state: str) -> dict[str, Any]:
    return {"finished_at": camp.clock()} if state in ENDS else {}
