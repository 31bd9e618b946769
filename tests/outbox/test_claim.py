"""A11: one due row, looked at and begun in one short transaction; nothing is ever claimed ahead."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from chalicelib.db.tables import channel_states, notification_channels, notification_outbox, scan_results
from chalicelib.outbox.claim import Claim, KindFull, RowBroken, claim_broken, claim_next
from chalicelib.outbox.states import SkipReason
from tests.outbox.camp import KEY, Camp, july
from tests.support.standins import open_connections


def test_a_claim_counts_the_attempt_sets_the_lease_and_commits(camp: Camp) -> None:
    camper = camp.camper()
    row_id = camp.alert(camper)
    claim = camp.claimed()
    assert open_connections(camp.deps.database) == 0
    row = camp.row()
    assert (row["status"], row["attempt_count"], row["finished_at"]) == ("sending", 1, None)
    assert (row["claim_token"], row["channel_id"], row["channel_kind"]) == (claim.token, camper.channel_id, "pushover")
    assert (claim.id, claim.attempt, claim.recipient, claim.target_id) == (row_id, 1, KEY, camp.target_id)
    assert row["told"] == {"101": ["2027-07-10"]}


def test_a_lease_outlasts_the_longest_attempt(camp: Camp) -> None:
    camp.alert(camp.camper())
    camp.with_settings(attempt_deadline=30).claimed()
    assert camp.row()["next_attempt_at"] > camp.clock() + timedelta(seconds=30)


def test_nothing_is_due(camp: Camp) -> None:
    assert camp.claim() is None


@pytest.mark.parametrize("state", ["pending", "retry"])
def test_a_row_is_due_at_its_moment_and_not_before(camp: Camp, state: str) -> None:
    camp.alert(camp.camper(), status=state, next_attempt_at=camp.clock() + timedelta(seconds=1))
    assert camp.claim() is None
    camp.clock.advance(seconds=1)
    assert isinstance(camp.claim(), Claim)


@pytest.mark.parametrize("state", ["sending", "sent", "skipped", "failed"])
def test_only_what_waits_is_claimed(camp: Camp, state: str) -> None:
    finished = None if state == "sending" else camp.clock()
    camp.alert(camp.camper(), status=state, finished_at=finished, next_attempt_at=camp.clock() - timedelta(days=1))
    assert camp.claim() is None


def test_every_claim_has_a_token_of_its_own(camp: Camp) -> None:
    row_id = camp.alert(camp.camper())
    first = camp.claimed()
    camp.change(notification_outbox, status="retry", next_attempt_at=camp.clock())
    second = camp.claimed()
    assert (first.id, second.id) == (row_id, row_id)  # the identity stays
    assert first.token != second.token
    assert (first.attempt, second.attempt) == (1, 2)
    assert camp.row()["claim_token"] == second.token


def test_the_longest_due_goes_first(camp: Camp) -> None:
    camper = camp.camper()
    camp.results({"101": july(10), "102": july(10)})
    later = camp.alert(camper, {"101": july(10)}, next_attempt_at=camp.clock() - timedelta(seconds=1))
    sooner = camp.alert(camper, {"102": july(10)}, next_attempt_at=camp.clock() - timedelta(seconds=2))
    assert [camp.claimed().id, camp.claimed().id] == [sooner, later]


def test_one_row_is_taken_at_a_time(camp: Camp) -> None:
    for email in ("ann@example.org", "bob@example.org", "cid@example.org"):
        camp.true_alert(email)
    camp.claimed()
    assert sorted(row["status"] for row in camp.rows()) == ["pending", "pending", "sending"]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_row_that_another_holds_is_passed_over(camp: Camp) -> None:
    held = camp.true_alert(next_attempt_at=camp.clock() - timedelta(hours=1))
    free = camp.true_alert("bob@example.org")
    o = notification_outbox.c
    with camp.deps.database.transaction() as connection:
        connection.execute(select(o.id).where(o.id == held).with_for_update())
        assert camp.claimed().id == free
        assert camp.claim() is None


def test_a_skip_is_committed_in_the_claims_own_transaction(camp: Camp) -> None:
    camp.alert(camp.camper(is_active=False))
    assert camp.claim() is SkipReason.SCAN_INACTIVE
    row = camp.row()
    assert (row["status"], row["attempt_count"], row["claim_token"]) == ("skipped", 0, None)


# --- the limit of a kind ---------------------------------------------------------------------------------


def _three(camp: Camp) -> list[UUID]:
    return [camp.true_alert(f"{name}@example.org") for name in ("ann", "bob", "cid")]


def test_no_more_are_under_way_than_the_kind_allows(camp: Camp) -> None:
    _three(camp)
    camp.claimed()
    camp.claimed()
    with pytest.raises(KindFull):
        camp.claim()
    assert [row["attempt_count"] for row in camp.rows() if row["status"] == "pending"] == [0]


def test_a_finished_send_makes_room(camp: Camp) -> None:
    _three(camp)
    camp.acknowledge(camp.claimed(), camp.channel.outcome)
    camp.claimed()
    assert isinstance(camp.claim(), Claim)


def test_an_ended_lease_makes_room(camp: Camp) -> None:
    camper = camp.camper("dee@example.org")
    for _ in range(2):
        camp.sending(camper, next_attempt_at=camp.clock())
    camp.true_alert()
    assert isinstance(camp.claim(), Claim)


def test_sends_of_another_kind_take_no_room(camp: Camp) -> None:
    camper = camp.camper("dee@example.org")
    for _ in range(3):
        camp.sending(camper, channel_kind="pigeon")
    camp.true_alert()
    assert isinstance(camp.claim(), Claim)


def test_a_kind_that_is_full_is_passed_over(camp: Camp) -> None:
    camp.true_alert()
    assert claim_next(camp.deps, camp.clock(), {"pushover"}) is None


def test_a_row_that_can_be_skipped_needs_no_room(camp: Camp) -> None:
    camper = camp.camper("dee@example.org")
    for _ in range(2):
        camp.sending(camper)
    camp.alert(camp.camper(is_active=False))
    assert camp.claim() is SkipReason.SCAN_INACTIVE


@pytest.mark.parametrize(("hours", "claimed"), [(1, False), (0, True), (-1, True)])
def test_a_parked_kind_is_left_alone_until_its_moment(camp: Camp, hours: int, claimed: bool) -> None:
    camp.insert(channel_states, {"kind": "pushover", "parked_until": camp.clock() + timedelta(hours=hours)})
    camp.true_alert()
    assert isinstance(camp.claim(), Claim) is claimed
    assert camp.row()["attempt_count"] == int(claimed)


def test_after_a_park_one_probe_is_under_way_at_once(camp: Camp) -> None:
    camp.insert(channel_states, {"kind": "pushover", "parked_until": camp.clock()})
    _three(camp)
    camp.claimed()
    with pytest.raises(KindFull):
        camp.claim()


# --- rows that break the code ----------------------------------------------------------------------------


def _break(camp: Camp) -> None:
    """What is stored of the campsite cannot be read: neither the payload's fault nor the database's."""
    camp.change(scan_results, nights={"never": "ever"})


def test_a_row_that_breaks_the_code_is_named_and_rolled_back(camp: Camp) -> None:
    row_id = camp.true_alert()
    _break(camp)
    with pytest.raises(RowBroken) as caught:
        camp.claim()
    assert caught.value.row_id == row_id
    assert (camp.status(), camp.row()["attempt_count"]) == ("pending", 0)


def test_a_broken_row_is_charged_an_attempt(camp: Camp) -> None:
    row_id = camp.true_alert()
    claim = claim_broken(camp.deps, row_id)
    assert claim is not None
    row = camp.row()
    assert (row["status"], row["attempt_count"], row["claim_token"]) == ("sending", 1, claim.token)
    assert row["next_attempt_at"] > camp.clock()


def test_a_broken_row_that_somebody_took_is_not_charged(camp: Camp) -> None:
    row_id = camp.true_alert(status="sending", attempt_count=1)
    assert claim_broken(camp.deps, row_id) is None
    assert camp.row()["attempt_count"] == 1
    assert claim_broken(camp.deps, uuid4()) is None


# --- what a claim notes for its acknowledgement ----------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "refusals", "watched"),
    [
        (None, 0, False),
        ({"faults": 0}, 0, False),
        ({"faults": 1}, 0, True),
        ({"faults": 0}, 1, True),
    ],
)
def test_a_claim_knows_of_trouble_before_it(
    camp: Camp, state: dict[str, Any] | None, refusals: int, watched: bool
) -> None:
    camp.true_alert()
    if state is not None:
        camp.insert(channel_states, {"kind": "pushover", **state})
    camp.change(notification_channels, refusals=refusals)
    assert camp.claimed().watched is watched
