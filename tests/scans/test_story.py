"""What a scan's owner reads of its messages: each once, newest first, with the reason where there is one."""

from collections.abc import Iterator
from datetime import date, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete

from chalicelib.channels.outcomes import DeliveryErrorCategory, Outcome, OutcomeClass
from chalicelib.db.audit import OPERATOR
from chalicelib.db.engine import Database
from chalicelib.db.tables import alert_history, campsites, notification_outbox, user_scans
from chalicelib.errors import NotFound
from chalicelib.outbox import states
from chalicelib.outbox.states import SkipReason, Status
from chalicelib.scans.story import REASONS, Cursor, Told, story
from tests.outbox.camp import Camp, Camper, july, site, stand_in_camp
from tests.support.standins import NOW

BUSY = Outcome(OutcomeClass.TRANSIENT, DeliveryErrorCategory.SERVER_ERROR)
REFUSED = Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.REJECTED)


@pytest.fixture
def camp(database: Database) -> Camp:
    return stand_in_camp(database)


def told(camp: Camp, camper: Camper) -> list[Told]:
    return story(camp.deps, camper.scan_id, by=camper.user_id)


# --- one message -----------------------------------------------------------------------------------------------------


def test_a_new_message_waits_with_the_nights_that_it_would_tell(camp: Camp) -> None:
    camper = camp.camper()
    row_id = camp.alert(camper, {"101": july(10, 11)})
    (one,) = told(camp, camper)
    assert one.to_json() == {
        "id": str(row_id),
        "outcome": "pending",
        "error_category": None,
        "reason": None,
        "attempts": 0,
        "nights": {"101": ["2027-07-10", "2027-07-11"]},
        "campsite_names": {"101": "101"},
        "created_at": "2027-07-01T12:00:00.123456Z",
        "finished_at": None,
        "next_attempt_at": "2027-07-01T12:00:00.123456Z",
        "channel_kind": None,
        "at": "2027-07-01T12:00:00.123456Z",
    }


def test_an_attempt_under_way_tells_what_its_claim_found_true(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper, {"101": july(10, 11)})  # the 11th is taken by now
    camp.claimed()
    (one,) = told(camp, camper)
    assert (one.outcome, one.attempts, one.channel_kind, one.next_attempt_at) == ("sending", 1, "pushover", None)
    assert one.nights == {"101": (date(2027, 7, 10),)}


def test_a_failed_attempt_says_why_and_when_the_next_one_is_due(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper)
    camp.acknowledge(camp.claimed(), BUSY)
    (one,) = told(camp, camper)
    assert (one.outcome, one.error_category) == ("retry", "server_error")
    assert one.reason == "The message service was in trouble."
    assert one.next_attempt_at == NOW + timedelta(seconds=120)


def test_a_sent_message_is_shown_once_though_outbox_and_history_hold_it(camp: Camp) -> None:
    camper = camp.camper()
    row_id = camp.alert(camper)
    camp.clock.advance(seconds=5)
    camp.drain()
    (one,) = told(camp, camper)
    assert (one.id, one.outcome, one.attempts, one.reason) == (row_id, "sent", 1, None)
    assert (one.created_at, one.finished_at, one.at) == (NOW, camp.clock(), camp.clock())
    assert (one.channel_kind, one.next_attempt_at) == ("pushover", None)


@pytest.mark.parametrize(("outcome", "status", "category"), [(REFUSED, "failed", "rejected"), (None, "retry", None)])
def test_a_refusal_is_told_as_a_failure_and_our_own_fault_as_one(
    camp: Camp, outcome: Outcome | None, status: str, category: str | None
) -> None:
    camper = camp.camper()
    camp.alert(camper)
    camp.acknowledge(camp.claimed(), outcome)
    (one,) = told(camp, camper)
    assert (one.outcome, one.error_category) == (status, category or "internal_error")
    assert one.reason == REASONS[category or "internal_error"]


def test_a_skipped_message_says_what_was_not_told_and_why(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper, {"101": july(12)})
    assert camp.claim() is SkipReason.NO_LONGER_AVAILABLE
    (one,) = told(camp, camper)
    assert (one.outcome, one.attempts, one.nights) == ("skipped", 0, {"101": (date(2027, 7, 12),)})
    assert one.reason == "The nights were taken again before the message went out."


def test_a_payload_that_cannot_be_read_does_not_hide_its_message(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper, payload={"title": 1})
    (one,) = told(camp, camper)
    assert (one.outcome, one.nights, one.campsite_names) == ("pending", {}, {})


# --- what the outbox has forgotten -----------------------------------------------------------------------------------


def test_a_day_later_names_come_from_the_results_or_from_the_catalogue(camp: Camp) -> None:
    camper = camp.camper()
    nights = {"101": july(10), "102": july(10), "103": july(10)}
    camp.results({"101": july(10), "102": july(10), "103": july(10)})
    row_id = camp.alert(camper, nights)
    camp.drain()
    camp.delete(notification_outbox, row_id)
    camp.results({"101": july(20)})
    here = {"provider": "recreation_gov", "campground_id": "100", "campsite_id": "102"}
    camp.insert(campsites, {**here, "campsite": site("102", name="Old oak").to_json()})
    (one,) = told(camp, camper)
    assert (one.outcome, sorted(one.nights)) == ("sent", ["101", "102", "103"])
    assert one.campsite_names == {"101": "101", "102": "Old oak"}
    assert (one.created_at, one.channel_kind, one.at) == (None, None, NOW)


# --- all of them -----------------------------------------------------------------------------------------------------


def test_messages_are_paged_newest_first_each_once(camp: Camp) -> None:
    """Waiting ones count from when they were written, others from their end, ties by id."""
    camper = camp.camper()
    for number in range(9):
        if number % 2:
            camp.clock.advance(seconds=1)
        row_id = camp.alert(camper, delivery_key=str(number))
        if number % 3:
            camp.change_row(notification_outbox, row_id, status=Status.SENT, finished_at=camp.clock())
            camp.insert(alert_history, _history(camper, row_id, camp))
    everything = told(camp, camper)
    assert len({one.id for one in everything}) == 9
    assert [(one.at, one.id) for one in everything] == sorted(((one.at, one.id) for one in everything), reverse=True)
    for size in (1, 2, 4):
        assert list(_pages(camp, camper, size)) == everything


def test_a_scans_story_is_its_own_and_its_owners(camp: Camp) -> None:
    ann, bob = camp.camper(), camp.camper("bob@example.org", "v" * 30)
    row_id = camp.alert(ann)
    camp.alert(bob)
    assert [one.id for one in story(camp.deps, ann.scan_id, by=OPERATOR)] == [row_id]
    for scan_id, by in ((ann.scan_id, bob.user_id), (uuid4(), OPERATOR)):
        with pytest.raises(NotFound):
            story(camp.deps, scan_id, by=by)
    with camp.deps.database.transaction() as connection:
        connection.execute(delete(user_scans).where(user_scans.c.id == ann.scan_id))
    with pytest.raises(NotFound):
        told(camp, ann)


def test_every_category_that_a_row_can_have_has_its_sentence() -> None:
    own = {states.INTERRUPTED, states.ATTEMPTS_EXHAUSTED, states.INTERNAL_ERROR}
    assert set(REASONS) == {*SkipReason, *DeliveryErrorCategory, *own}
    assert all(reason.endswith(".") and reason[0].isupper() for reason in REASONS.values())
    assert len(set(REASONS.values())) == len(REASONS)


def _pages(camp: Camp, camper: Camper, size: int) -> Iterator[Told]:
    after: Cursor | None = None
    while page := story(camp.deps, camper.scan_id, by=camper.user_id, after=after, limit=size):
        yield from page
        after = page[-1].at, page[-1].id


def _history(camper: Camper, row_id: UUID, camp: Camp) -> dict[str, object]:
    return {
        "id": row_id,
        "user_id": camper.user_id,
        "scan_id": camper.scan_id,
        "outcome": "sent",
        "attempt_count": 1,
        "nights": {"101": ["2027-07-10"]},
        "finished_at": camp.clock(),
    }
