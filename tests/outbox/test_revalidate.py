"""A13, A14: what is told is true now, wanted now, and allowed now; what is not is skipped, and the row says why."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from chalicelib.db.tables import (
    notification_channels,
    notification_outbox,
    scan_results,
    unique_targets,
    user_scans,
    users,
)
from chalicelib.db.vault import Vault, new_key
from chalicelib.outbox.claim import Claim
from chalicelib.outbox.states import SkipReason
from chalicelib.stays.campsites import Campsite
from tests.outbox.camp import Camp, Camper, july, site

Break = Callable[[Camp, Camper], None]


def _columns(table: Any, **values: Any) -> Break:
    return lambda camp, _: camp.change(table, **values)


def _owned_by_another(camp: Camp, camper: Camper) -> None:
    other = camp.camper("bob@example.org")
    camp.change_row(user_scans, camper.scan_id, user_id=other.user_id)


def _follows_another_target(camp: Camp, camper: Camper) -> None:
    camp.change_row(user_scans, camper.scan_id, target_id=camp.target(date(2027, 7, 2)))


def _own_channel_off(camp: Camp, camper: Camper) -> None:
    """The scan names a channel that is off, while another one works."""
    off = uuid4()
    row = {"id": off, "user_id": camper.user_id, "kind": "pushover", "enabled": False, "created_at": camp.clock()}
    camp.insert(notification_channels, row)
    camp.change_row(user_scans, camper.scan_id, channel_id=off)


def _channel_of_another(camp: Camp, camper: Camper) -> None:
    other = camp.camper("bob@example.org")
    camp.delete(notification_channels, camper.channel_id)
    camp.change_row(user_scans, camper.scan_id, channel_id=other.channel_id)


def _no_app_token(camp: Camp, _: Camper) -> None:
    camp.channel.configured = False


# In the order in which they are looked at, which is A13's: who and what, then whether it is true, then how to tell it.
BREAKS: list[tuple[str, str, Break]] = [
    ("user deleted", "user_missing", lambda camp, camper: camp.delete(users, camper.user_id)),
    ("scan deleted", "scan_missing", lambda camp, camper: camp.delete(user_scans, camper.scan_id)),
    ("target gone", "target_missing", _columns(notification_outbox, target_id=None)),
    ("another's scan", "not_owner", _owned_by_another),
    ("may not scan", "scanning_disabled", _columns(users, scanning_enabled=False)),
    ("paused", "scan_inactive", _columns(user_scans, is_active=False)),
    ("moved", "target_changed", _follows_another_target),
    ("over", "dates_passed", _columns(unique_targets, start_date=date(2027, 5, 1), end_date=date(2027, 7, 1))),
    ("type unwanted", "filters_unmatched", _columns(user_scans, preferred_types=["cabin"])),
    ("stay too short", "filters_unmatched", _columns(user_scans, min_stay_length=2)),
    ("never checked", "stale", _columns(unique_targets, last_checked_at=None)),
    ("taken", "no_longer_available", lambda camp, _: camp.results({})),
    ("another night", "no_longer_available", lambda camp, _: camp.results({"101": july(11)})),
    ("another site", "no_longer_available", lambda camp, _: camp.results({"102": july(10)})),
    ("no channel", "channel_missing", lambda camp, camper: camp.delete(notification_channels, camper.channel_id)),
    ("kind unknown", "channel_missing", _columns(notification_channels, kind="pigeon")),
    ("another's channel", "channel_missing", _channel_of_another),
    ("channel off", "channel_disabled", _columns(notification_channels, enabled=False)),
    ("own channel off", "channel_disabled", _own_channel_off),
    ("no app token", "app_credentials_missing", _no_app_token),
    ("no recipient", "credentials_missing", _columns(notification_channels, credentials=None)),
    ("unreadable", "credentials_missing", _columns(notification_channels, credentials="gAAAA-not-of-these-keys")),
]
CAUSES = pytest.mark.parametrize(
    ("reason", "breaks"), [entry[1:] for entry in BREAKS], ids=[name for name, *_ in BREAKS]
)


@CAUSES
@pytest.mark.parametrize("state", ["pending", "retry"])
def test_what_is_no_longer_so_is_skipped_with_its_reason(camp: Camp, reason: str, breaks: Break, state: str) -> None:
    camper = camp.camper()
    camp.alert(camper, status=state, attempt_count=3 if state == "retry" else 0)
    breaks(camp, camper)
    result = camp.drain()
    row = camp.row()
    assert (row["status"], row["error_category"], row["finished_at"]) == ("skipped", reason, camp.clock())
    assert row["attempt_count"] == (3 if state == "retry" else 0)  # a skip found while claiming costs nothing
    assert camp.channel.sent == []
    assert (result.outcome, result.counts["skipped"], result.counts["claimed"]) == ("success", 1, 0)


@CAUSES
def test_a_skip_is_remembered_with_what_was_not_told(camp: Camp, reason: str, breaks: Break) -> None:
    camper = camp.camper()
    camp.alert(camper)
    breaks(camp, camper)
    camp.drain()
    story = camp.story()
    assert (story["outcome"], story["error_category"], story["nights"]) == ("skipped", reason, {"101": ["2027-07-10"]})


def test_every_reason_is_reached_by_a_test() -> None:
    elsewhere = {"not_invited", "superseded"}  # below, and in test_superseded.py
    assert {reason for _, reason, _ in BREAKS} | elsewhere == set(SkipReason)


def test_only_the_invited_are_told_where_that_is_needed(camp: Camp) -> None:
    invited, other = camp.camper(), camp.camper("bob@example.org")
    camp.change_row(users, invited.user_id, invited_at=camp.clock())
    told, skipped = camp.alert(invited), camp.alert(other)
    camp.with_settings(invite_only=True).drain()
    assert camp.ended(told) == ("sent", None)
    assert camp.ended(skipped) == ("skipped", "not_invited")


def test_nobody_needs_an_invitation_elsewhere(camp: Camp) -> None:
    camp.alert(camp.camper())
    camp.drain()
    assert camp.status() == "sent"


# Pairs that can hold at once without one implying the other.
PRECEDENCE = [
    ("user deleted", "over", "user_missing"),
    ("scan deleted", "over", "scan_missing"),
    ("target gone", "paused", "target_missing"),
    ("another's scan", "may not scan", "not_owner"),
    ("may not scan", "paused", "scanning_disabled"),
    ("paused", "moved", "scan_inactive"),
    ("moved", "type unwanted", "target_changed"),
    ("over", "type unwanted", "dates_passed"),
    ("type unwanted", "taken", "filters_unmatched"),
    ("type unwanted", "never checked", "filters_unmatched"),
    ("never checked", "taken", "stale"),
    ("taken", "no channel", "no_longer_available"),
    ("channel off", "no app token", "channel_disabled"),
    ("no app token", "no recipient", "app_credentials_missing"),
]


@pytest.mark.parametrize(("one", "other", "reason"), PRECEDENCE)
def test_the_first_reason_in_the_pages_order_is_told(camp: Camp, one: str, other: str, reason: str) -> None:
    breaks = {name: breaking for name, _, breaking in BREAKS}
    camper = camp.camper()
    camp.alert(camper)
    breaks[other](camp, camper)
    breaks[one](camp, camper)
    camp.drain()
    assert camp.ended() == ("skipped", reason)


# --- channels --------------------------------------------------------------------------------------------


def test_the_oldest_enabled_channel_is_taken_and_noted(camp: Camp) -> None:
    camper = camp.camper()
    older, oldest = uuid4(), uuid4()
    for channel_id, key, hours, enabled in ((older, "u-older", 1, True), (oldest, "u-oldest", 2, False)):
        camp.insert(
            notification_channels,
            {
                "id": channel_id,
                "user_id": camper.user_id,
                "kind": "pushover",
                "credentials": camp.deps.vault.encrypt(key),
                "enabled": enabled,
                "created_at": camp.clock() - timedelta(hours=hours),
            },
        )
    camp.alert(camper)
    camp.drain()
    assert [recipient for recipient, _ in camp.channel.sent] == ["u-older"]
    assert (camp.row()["channel_id"], camp.row()["channel_kind"]) == (older, "pushover")


def test_the_scans_own_channel_goes_before_an_older_one(camp: Camp) -> None:
    camper, own = camp.camper(), uuid4()
    row = {"id": own, "user_id": camper.user_id, "kind": "pushover", "created_at": camp.clock() + timedelta(days=1)}
    camp.insert(notification_channels, {**row, "credentials": camp.deps.vault.encrypt("u-own")})
    camp.change_row(user_scans, camper.scan_id, channel_id=own)
    camp.alert(camper)
    camp.drain()
    assert [recipient for recipient, _ in camp.channel.sent] == ["u-own"]


def test_a_channel_is_looked_up_at_each_claim(camp: Camp) -> None:
    camper = camp.camper()
    camp.alert(camper, status="retry", attempt_count=1, channel_id=camper.channel_id, channel_kind="pushover")
    camp.change(notification_channels, credentials=camp.deps.vault.encrypt("u-moved"))
    camp.drain()
    assert [recipient for recipient, _ in camp.channel.sent] == ["u-moved"]


def test_a_recipient_that_an_old_key_encrypted_is_read(camp: Camp) -> None:
    old, new = new_key(), new_key()
    camper = camp.camper()
    camp.change(notification_channels, credentials=Vault([old]).encrypt("u-rotated"))
    object.__setattr__(camp.deps, "vault", Vault([new, old]))
    camp.alert(camper)
    camp.drain()
    assert [recipient for recipient, _ in camp.channel.sent] == ["u-rotated"]


# --- nights ----------------------------------------------------------------------------------------------


def test_today_and_later_stay_and_the_past_goes(camp: Camp) -> None:
    camp.clock.now = datetime(2027, 7, 10, 23, 59, 59, tzinfo=UTC)
    _hold(camp, {"101": july(8, 9, 10, 11)})
    assert _told(camp, {"101": july(8, 9, 10, 11)}) == {"101": july(10, 11)}


def test_a_night_is_past_from_midnight_utc_on(camp: Camp) -> None:
    camp.clock.now = datetime(2027, 7, 11, 0, 0, 0, tzinfo=UTC)
    _hold(camp, {"101": july(10)})
    assert _told(camp, {"101": july(10)}) == SkipReason.DATES_PASSED


@pytest.mark.parametrize(
    ("today", "told"), [(date(2027, 7, 31), {"101": july(31)}), (date(2027, 8, 1), SkipReason.DATES_PASSED)]
)
def test_a_target_is_over_when_its_last_night_is(camp: Camp, today: date, told: object) -> None:
    camp.clock.now = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    _hold(camp, {"101": july(31)})
    assert _told(camp, {"101": july(31)}) == told


def test_nights_outside_of_the_targets_range_go(camp: Camp) -> None:
    camp.change(unique_targets, start_date=date(2027, 7, 10), end_date=date(2027, 7, 13))
    _hold(camp, {"101": july(8, 9, 10, 11, 12, 13, 14)})
    assert _told(camp, {"101": july(8, 9, 10, 11, 12, 13, 14)}) == {"101": july(10, 11, 12)}


def test_nothing_within_the_range_is_skipped(camp: Camp) -> None:
    camp.change(unique_targets, start_date=date(2027, 7, 20))
    assert _told(camp, {"101": july(10)}) == SkipReason.DATES_PASSED


def test_nights_that_are_no_longer_held_go(camp: Camp) -> None:
    _hold(camp, {"101": july(10, 12), "102": july(20)})
    told = _told(camp, {"101": july(10, 11, 12), "102": july(20), "103": july(21)})
    assert told == {"101": july(10, 12), "102": july(20)}


def test_nights_that_were_found_since_are_not_this_alerts(camp: Camp) -> None:
    _hold(camp, {"101": july(9, 10, 11), "102": july(10)})
    assert _told(camp, {"101": july(10)}) == {"101": july(10)}


@pytest.mark.parametrize(("age", "told"), [(21600, {"101": july(10)}), (21601, SkipReason.STALE)])
def test_results_prove_something_for_six_hours(camp: Camp, age: int, told: object) -> None:
    camp.change(unique_targets, last_checked_at=camp.clock() - timedelta(seconds=age))
    assert _told(camp, {"101": july(10)}) == told


def test_how_long_results_prove_something_is_a_setting(camp: Camp) -> None:
    camp.change(unique_targets, last_checked_at=camp.clock() - timedelta(seconds=61))
    assert _told(camp.with_settings(results_max_age=60), {"101": july(10)}) == SkipReason.STALE


@pytest.mark.parametrize(("age", "told"), [(21600, {"101": july(10)}), (21601, SkipReason.NO_LONGER_AVAILABLE)])
def test_a_month_that_has_been_unknown_for_too_long_proves_nothing(camp: Camp, age: int, told: object) -> None:
    since = (camp.clock() - timedelta(seconds=age)).isoformat()
    camp.change(scan_results, unknown_since={"2027-07-01": since})
    assert _told(camp, {"101": july(10)}) == told


def test_another_month_that_is_unknown_concerns_nobody(camp: Camp) -> None:
    since = (camp.clock() - timedelta(hours=20)).isoformat()
    camp.change(scan_results, unknown_since={"2027-08-01": since})
    assert _told(camp, {"101": july(10)}) == {"101": july(10)}


@pytest.mark.parametrize(
    ("shortest", "left", "told"),
    [
        (1, july(10, 12), {"101": july(10, 12)}),
        (2, july(10, 12), SkipReason.NO_LONGER_AVAILABLE),
        (2, july(10, 12, 13), {"101": july(12, 13)}),
        (3, july(10, 11, 12), {"101": july(10, 11, 12)}),
        (3, july(10, 11), SkipReason.NO_LONGER_AVAILABLE),
    ],
)
def test_the_shortest_stay_holds_for_what_is_left(camp: Camp, shortest: int, left: list[date], told: object) -> None:
    _hold(camp, {"101": left})
    assert _told(camp, {"101": july(10, 11, 12, 13)}, min_stay_length=shortest) == told


def test_today_may_leave_too_short_a_stay(camp: Camp) -> None:
    camp.clock.now = datetime(2027, 7, 11, 12, tzinfo=UTC)
    _hold(camp, {"101": july(10, 11)})
    assert _told(camp, {"101": july(10, 11)}, min_stay_length=2) == SkipReason.DATES_PASSED


FILTERS: list[tuple[str, dict[str, Any], Campsite]] = [
    ("type", {"preferred_types": ["cabin"]}, site(types=frozenset({"cabin"}))),
    ("unknown type", {"preferred_types": ["tent"]}, site("102", types=frozenset({"tent"}))),
    ("electric", {"require_electric": True}, site(electric=True)),
    ("accessible", {"require_accessible": True}, site(accessible=True)),
    ("people", {"people": 8}, site(max_people=8)),
    ("loop", {"loops_wanted": ["b"]}, site(loop="B")),
    ("unwanted loop", {"loops_unwanted": ["a"]}, site(loop="B")),
    ("site by name", {"campsites_wanted": ["044"]}, site(name="044")),
    ("unwanted site", {"campsites_unwanted": ["101"]}, site("102")),
    ("arrival", {"arrival_weekdays": [5]}, site()),  # 10 July 2027 is a Saturday
]
UNFIT = {
    "type": site(),
    "unknown type": site(types=frozenset()),
    "electric": site(electric=None),
    "accessible": site(accessible=None),
    "people": site(max_people=0),
    "loop": site(),
    "unwanted loop": site(),
    "site by name": site(),
    "unwanted site": site(),
}


@pytest.mark.parametrize(("name", "wishes", "fitting"), FILTERS, ids=[name for name, *_ in FILTERS])
def test_each_filter_holds_at_delivery(camp: Camp, name: str, wishes: dict[str, Any], fitting: Campsite) -> None:
    """Filters that the scan did not have when the alert was written."""
    _hold(camp, {"101": july(10), "102": july(10)})
    camper = camp.camper()
    unfit = UNFIT.get(name)
    night = july(10) if unfit else july(9)
    fits = camp.alert(camper, payload=camp.payload({fitting.id: july(10)}, fitting))
    does_not = camp.alert(
        camper,
        payload=camp.payload({(unfit or fitting).id: night}, unfit or fitting),
        created_at=camp.clock() - timedelta(hours=1),
    )
    camp.change_row(user_scans, camper.scan_id, **wishes)
    camp.drain()
    assert camp.ended(fits) == ("sent", None)
    assert camp.ended(does_not) == ("skipped", "filters_unmatched")


# --- the message -----------------------------------------------------------------------------------------


def test_a_summary_is_counted_again_and_tells_the_nights_that_remain(camp: Camp) -> None:
    _hold(camp, {"101": july(10, 11), "103": july(20)})
    camper = camp.camper()
    camp.alert(camper, {"101": july(10, 11, 12), "102": july(10), "103": july(20)})
    stored = camp.row()["payload"]
    assert "3 campsites" in stored["title"]
    camp.drain()
    ((_, message),) = camp.channel.sent
    assert "2 campsites" in message.title
    assert [line.partition(": ")[2] for line in message.items] == [
        "Sat 10 Jul → Mon 12 Jul, 2 nights",
        "Tue 20 Jul → Wed 21 Jul, 1 night",
    ]
    assert "102" not in str(message)
    assert camp.told() == {"101": ["2027-07-10", "2027-07-11"], "103": ["2027-07-20"]}
    assert camp.row()["told"] == camp.told()
    assert camp.row()["payload"] == stored  # what was seen stays what was seen


def test_one_campsite_is_not_several(camp: Camp) -> None:
    camp.alert(camp.camper(), {"101": july(10), "102": july(10)})
    camp.drain()
    ((_, message),) = camp.channel.sent
    assert "1 campsite is open" in message.title


def test_a_message_says_when_its_nights_were_seen_and_where_to_book(camp: Camp) -> None:
    camp.alert(camp.camper())
    camp.clock.advance(hours=2)
    camp.drain()
    ((_, message),) = camp.channel.sent
    assert "1 Jul 12:00 UTC" in message.note
    assert message.url == "https://booking.example/campgrounds/100"


def test_a_direct_alert_leads_to_its_campsite(camp: Camp) -> None:
    camper = camp.camper(mode="direct")
    payload = camp.payload({"101": july(10)}, summary=False)
    camp.alert(camper, payload=payload, delivery_key="101")
    camp.drain()
    ((_, message),) = camp.channel.sent
    assert message.url == "https://booking.example/campsites/101"
    assert "101" in message.title
    assert len(message.items) == 1


def test_more_campsites_than_are_read_by_name_are_all_checked(camp: Camp) -> None:
    many = {str(number): july(10) for number in range(1000, 1060)}
    gone = dict(list(many.items())[:-1])
    _hold(camp, gone)
    assert _told(camp, many) == gone


# --- helpers ---------------------------------------------------------------------------------------------


def _hold(camp: Camp, nights: dict[str, list[date]]) -> None:
    """The latest results, just checked."""
    camp.results(nights)
    camp.change(unique_targets, last_checked_at=camp.clock())


def _told(camp: Camp, nights: dict[str, list[date]], **wishes: Any) -> dict[str, list[date]] | SkipReason | None:
    """What is left of an alert of these nights, or why nothing is."""
    camp.alert(camp.camper(**wishes), nights)
    claim = camp.claim()
    if not isinstance(claim, Claim):
        return claim
    assert claim.alert is not None
    return {opening.campsite.id: list(opening.nights) for opening in claim.alert.openings}
