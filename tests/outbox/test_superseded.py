"""A20: nothing is told twice to one scan, and nothing that only the older alert holds is lost."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import pytest

from chalicelib.db.tables import notification_outbox, user_scans
from tests.outbox.camp import Camp, Camper, july, later, site
from tests.support.standins import ACCEPTED

OLDER, NEWER = -10, -5


@pytest.fixture
def camper(camp: Camp) -> Camper:
    camp.results({"101": july(10, 11, 12), "102": july(20)})
    return camp.camper()


def _alert(camp: Camp, camper: Camper, minutes: int, nights: dict[str, list[date]], **columns: Any) -> UUID:
    return camp.alert(camper, nights, created_at=later(camp.clock(), minutes=minutes), **columns)


def _last(camp: Camp) -> dict[str, list[date]]:
    """What the one claim that is under way tells."""
    (told,) = [row["told"] for row in camp.rows() if row["status"] == "sending"]
    return {site_id: [date.fromisoformat(night) for night in own] for site_id, own in told.items()}


def _due(camp: Camp, *, first: bool) -> dict[str, Any]:
    return {"next_attempt_at": camp.clock() - timedelta(hours=1 if first else 0)}


# --- a newer one that waits ------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "retry"])
def test_what_a_newer_waiting_one_would_tell_is_not_told(camp: Camp, camper: Camper, state: str) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10, 11)}, **_due(camp, first=True))
    newer = _alert(camp, camper, NEWER, {"101": july(10, 11, 12)}, status=state)
    camp.drain()
    assert camp.ended(older) == ("skipped", "superseded")
    assert camp.ended(newer) == ("sent", None)
    assert len(camp.channel.sent) == 1
    assert camp.row(older)["attempt_count"] == 0


def test_a_newer_one_that_is_not_due_yet_counts(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10)})
    _alert(camp, camper, NEWER, {"101": july(10)}, status="retry", next_attempt_at=later(camp.clock(), hours=2))
    camp.drain()
    assert camp.ended(older) == ("skipped", "superseded")


def test_what_only_the_older_one_holds_is_told(camp: Camp, camper: Camper) -> None:
    _alert(camp, camper, OLDER, {"101": july(10, 11), "102": july(20)}, **_due(camp, first=True))
    _alert(camp, camper, NEWER, {"101": july(11, 12)})
    camp.claimed()
    assert _last(camp) == {"101": july(10), "102": july(20)}


def test_together_they_tell_everything_once(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10, 11), "102": july(20)}, **_due(camp, first=True))
    newer = _alert(camp, camper, NEWER, {"101": july(11, 12)})
    camp.drain()
    told = [camp.row(older)["told"], camp.row(newer)["told"]]
    nights = sorted((site_id, night) for one in told for site_id, own in one.items() for night in own)
    assert nights == [
        (key, day.isoformat()) for key, own in (("101", july(10, 11, 12)), ("102", july(20))) for day in own
    ]
    assert len(camp.channel.sent) == 2


def test_the_message_of_the_older_one_tells_the_rest_alone(camp: Camp, camper: Camper) -> None:
    _alert(camp, camper, OLDER, {"101": july(10), "102": july(20)}, **_due(camp, first=True))
    _alert(camp, camper, NEWER, {"101": july(10)}, next_attempt_at=later(camp.clock(), hours=1))
    camp.drain()
    ((_, message),) = camp.channel.sent
    assert len(message.items) == 1
    assert "102" in message.items[0]
    assert "1 campsite is" in message.title


def test_the_newer_one_is_not_superseded_by_the_older(camp: Camp, camper: Camper) -> None:
    _alert(camp, camper, OLDER, {"101": july(10, 11, 12)})
    newer = _alert(camp, camper, NEWER, {"101": july(10)}, **_due(camp, first=True))
    assert camp.claimed().id == newer


def test_of_two_of_the_same_moment_the_greater_id_is_the_newer(camp: Camp, camper: Camper) -> None:
    ids = [_alert(camp, camper, OLDER, {"101": july(10)}), _alert(camp, camper, OLDER, {"101": july(10)})]
    camp.drain()
    assert [camp.ended(row_id) for row_id in sorted(ids)] == [("skipped", "superseded"), ("sent", None)]


def test_of_three_only_the_newest_tells(camp: Camp, camper: Camper) -> None:
    rows = [_alert(camp, camper, minutes, {"101": july(10)}) for minutes in (-3, -2, -1)]
    camp.drain()
    assert [camp.status(row_id) for row_id in rows] == ["skipped", "skipped", "sent"]


# --- a newer one that would itself be skipped ------------------------------------------------------------


def test_a_newer_one_whose_nights_are_gone_supersedes_nothing(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10)}, **_due(camp, first=True))
    newer = _alert(camp, camper, NEWER, {"103": july(10), "101": july(25)})
    camp.drain()
    assert camp.ended(older) == ("sent", None)
    assert camp.ended(newer) == ("skipped", "no_longer_available")


def test_of_a_newer_one_only_the_nights_that_it_could_still_tell_count(camp: Camp, camper: Camper) -> None:
    """What the newer one held of 102 is gone from its campsite's filter, not from the results."""
    camp.change_row(user_scans, camper.scan_id, min_stay_length=2)
    older = _alert(camp, camper, OLDER, {"101": july(10, 11)}, **_due(camp, first=True))
    newer = _alert(camp, camper, NEWER, {"101": july(12)})
    camp.drain()
    assert camp.ended(older) == ("sent", None)
    assert camp.row(older)["told"] == {"101": ["2027-07-10", "2027-07-11"]}
    assert camp.ended(newer) == ("skipped", "filters_unmatched")


def test_a_newer_one_of_a_campsite_that_no_longer_will_do_supersedes_nothing(camp: Camp, camper: Camper) -> None:
    camp.change_row(user_scans, camper.scan_id, require_electric=True)
    older = _alert(camp, camper, OLDER, {"101": july(10)}, **_due(camp, first=True))
    unfit = camp.payload({"101": july(10)}, site("101", electric=None))
    _alert(camp, camper, NEWER, {}, payload=unfit)
    camp.drain()
    assert camp.ended(older) == ("sent", None)


def test_a_newer_one_of_another_target_supersedes_nothing(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10)}, **_due(camp, first=True))
    newer = _alert(camp, camper, NEWER, {"101": july(10)}, target_id=camp.target(date(2027, 7, 2)))
    camp.drain()
    assert camp.ended(older) == ("sent", None)
    assert camp.ended(newer) == ("skipped", "target_changed")


def test_a_newer_one_of_a_target_that_is_gone_supersedes_nothing(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10)}, **_due(camp, first=True))
    _alert(camp, camper, NEWER, {"101": july(10)}, target_id=None)
    camp.drain()
    assert camp.ended(older) == ("sent", None)


@pytest.mark.parametrize("nobody", [True, False])
def test_a_newer_one_for_somebody_else_supersedes_nothing(camp: Camp, camper: Camper, nobody: bool) -> None:
    """It would be skipped, as the scan is not that person's."""
    other = None if nobody else camp.camper("bob@example.org").user_id
    older = _alert(camp, camper, OLDER, {"101": july(10)}, **_due(camp, first=True))
    _alert(camp, camper, NEWER, {"101": july(10)}, user_id=other)
    camp.drain()
    assert camp.ended(older) == ("sent", None)


def test_a_newer_one_that_cannot_be_read_supersedes_nothing(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10)}, **_due(camp, first=True))
    newer = _alert(camp, camper, NEWER, {}, payload={"openings": 7})
    camp.drain()
    assert camp.ended(older) == ("sent", None)
    assert camp.ended(newer) == ("failed", "malformed_payload")


# --- a newer one that was or is being told ---------------------------------------------------------------


def _told(*nights: date, site_id: str = "101") -> dict[str, list[str]]:
    return {site_id: [night.isoformat() for night in nights]}


@pytest.mark.parametrize("state", ["sent", "sending"])
def test_what_a_newer_one_told_or_is_telling_is_not_told(camp: Camp, camper: Camper, state: str) -> None:
    finished = camp.clock() if state == "sent" else None
    lease = later(camp.clock(), minutes=1)
    older = _alert(camp, camper, OLDER, {"101": july(10, 11)})
    columns = {"status": state, "finished_at": finished, "attempt_count": 1, "next_attempt_at": lease}
    _alert(camp, camper, NEWER, {"101": july(10, 11)}, told=_told(*july(10, 11)), **columns)
    camp.drain()
    assert camp.ended(older) == ("skipped", "superseded")
    assert camp.channel.sent == []


def test_what_a_newer_one_did_not_tell_though_it_held_it_is_told(camp: Camp, camper: Camper) -> None:
    """It was taken then, and is open again; the newer one told the rest."""
    _alert(camp, camper, OLDER, {"101": july(10, 11)})
    told = {"status": "sent", "finished_at": camp.clock(), "told": _told(*july(11))}
    _alert(camp, camper, NEWER, {"101": july(10, 11)}, **told)
    camp.claimed()
    assert _last(camp) == {"101": july(10)}


@pytest.mark.parametrize("state", ["skipped", "failed"])
def test_a_newer_one_that_told_nobody_supersedes_nothing(camp: Camp, camper: Camper, state: str) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10)})
    _alert(camp, camper, NEWER, {"101": july(10)}, status=state, finished_at=camp.clock(), told=_told(*july(10)))
    camp.drain()
    assert camp.ended(older) == ("sent", None)


def test_an_older_one_that_was_told_supersedes_nothing(camp: Camp, camper: Camper) -> None:
    """It closed and opened again: that is news."""
    _alert(camp, camper, OLDER, {"101": july(10)}, status="sent", finished_at=camp.clock(), told=_told(*july(10)))
    newer = _alert(camp, camper, NEWER, {"101": july(10)})
    camp.drain()
    assert camp.ended(newer) == ("sent", None)


def test_another_scans_alert_supersedes_nothing(camp: Camp, camper: Camper) -> None:
    mine = _alert(camp, camper, OLDER, {"101": july(10)})
    other = replace(camper, scan_id=camp.scan(camper.user_id))
    _alert(camp, other, NEWER, {"101": july(10)}, status="sent", finished_at=camp.clock(), told=_told(*july(10)))
    camp.drain()
    assert camp.ended(mine) == ("sent", None)


def test_an_alert_that_is_no_longer_true_says_so_rather(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(25)}, **_due(camp, first=True))
    _alert(camp, camper, NEWER, {"101": july(10)})
    camp.drain()
    assert camp.ended(older) == ("skipped", "no_longer_available")


# --- modes and times -------------------------------------------------------------------------------------


def test_a_newer_summary_supersedes_older_direct_alerts(camp: Camp, camper: Camper) -> None:
    rows = [
        _alert(camp, camper, OLDER, {site_id: own}, delivery_key=site_id, **_due(camp, first=True))
        for site_id, own in (("101", july(10)), ("102", july(20)))
    ]
    summary = _alert(camp, camper, NEWER, {"101": july(10, 11), "102": july(20)})
    camp.drain()
    assert [camp.ended(row_id) for row_id in rows] == [("skipped", "superseded")] * 2
    assert camp.ended(summary) == ("sent", None)


def test_a_newer_direct_alert_takes_its_campsite_out_of_an_older_summary(camp: Camp, camper: Camper) -> None:
    _alert(camp, camper, OLDER, {"101": july(10), "102": july(20)}, **_due(camp, first=True))
    _alert(camp, camper, NEWER, {"102": july(20)}, delivery_key="102")
    camp.claimed()
    assert _last(camp) == {"101": july(10)}


def test_direct_alerts_of_one_detection_leave_each_other_alone(camp: Camp, camper: Camper) -> None:
    for site_id, own in (("101", july(10)), ("102", july(20))):
        _alert(camp, camper, OLDER, {site_id: own}, delivery_key=site_id)
    assert camp.drain().counts["sent"] == 2


def test_a_retry_is_superseded_by_what_came_meanwhile(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10)}, status="retry", attempt_count=2, error_category="timeout")
    _alert(camp, camper, NEWER, {"101": july(10, 11)})
    camp.drain()
    assert camp.ended(older) == ("skipped", "superseded")
    assert camp.row(older)["attempt_count"] == 2


def test_a_late_acceptance_of_the_older_one_is_kept(camp: Camp, camper: Camper) -> None:
    older = _alert(camp, camper, OLDER, {"101": july(10)})
    claim = camp.claimed()
    newer = _alert(camp, camper, NEWER, {"101": july(10)})
    camp.acknowledge(claim, ACCEPTED)
    camp.drain()
    assert (camp.status(older), camp.status(newer)) == ("sent", "sent")
    assert camp.count(notification_outbox) == 2
