"""A9, A25: what is stored can be read again, the earlier form too; anything else is malformed and nothing worse."""

import json
from copy import deepcopy
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from chalicelib.db.tables import notification_channels, user_scans
from chalicelib.outbox.payload import MalformedPayload, NotificationDTO, Opening
from chalicelib.stays.campsites import Campsite, Equipment
from tests.outbox.camp import KEY, Camp, july, site

EARLIER: dict[str, Any] = {
    "title": "Campsite available",
    "message": "Site 044 is available",
    "booking_url": "https://www.recreation.gov/camping/campsites/1234",
    "park_name": "Upper Pines",
    "campsite_name": "044",
    "start_date": "2027-07-18",
    "end_date": "2027-07-25",
    "metadata": {
        "campsite_id": "1234",
        "campsite_type": "TENT",
        "is_electric": False,
        "is_accessible": False,
        "available_dates": ["2027-07-20", "2027-07-21"],
    },
}

# --- round trip ------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=30)
DATES = st.dates(date(2000, 1, 1), date(2100, 1, 1))
COUNTS = st.none() | st.integers(0, 500)
CAMPSITES = st.builds(
    Campsite,
    id=st.text(min_size=1, max_size=20),
    name=TEXTS,
    loop=st.none() | TEXTS,
    provider_type=st.none() | TEXTS,
    types=st.frozensets(st.sampled_from(["tent", "rv", "cabin", "group", "other"])),
    electric=st.none() | st.booleans(),
    accessible=st.none() | st.booleans(),
    min_people=COUNTS,
    max_people=COUNTS,
    min_stay=COUNTS,
    equipment=st.lists(st.builds(Equipment, TEXTS, COUNTS), max_size=3).map(tuple),
)
ALERTS = st.builds(
    NotificationDTO,
    title=TEXTS,
    message=TEXTS,
    booking_url=TEXTS,
    park_name=TEXTS,
    campsite_name=st.none() | TEXTS,
    start_date=DATES,
    end_date=DATES,
    openings=st.lists(
        st.builds(Opening, CAMPSITES, st.lists(DATES, min_size=1, max_size=5).map(tuple), TEXTS), max_size=4
    ).map(tuple),
    seen_at=st.none() | st.datetimes(timezones=st.just(UTC)),
)


@given(ALERTS)
def test_what_is_written_is_read_again(alert: NotificationDTO) -> None:
    assert NotificationDTO.from_json(json.loads(json.dumps(alert.to_json()))) == alert


def test_what_is_written_comes_back_from_the_database(camp: Camp) -> None:
    camp.alert(camp.camper(), {"101": july(10, 11), "102": july(20)})
    alert = NotificationDTO.from_json(camp.row()["payload"])
    assert alert.nights() == {"101": frozenset(july(10, 11)), "102": frozenset(july(20))}
    assert alert.openings[0].campsite == site("101")


def test_a_payload_tells_what_a_recheck_needs(camp: Camp) -> None:
    payload = camp.payload({"101": july(10)})
    assert {"title", "message", "booking_url", "park_name", "campsite_name", "start_date", "end_date"} <= set(payload)
    (opening,) = payload["openings"]
    assert {"campsite_id", "name", "type", "types", "electric", "accessible", "nights"} <= set(opening)


# --- garbage ---------------------------------------------------------------------------------------------

# What both databases can keep: neither takes Infinity, and PostgreSQL no NUL.
CHARACTERS = st.characters(exclude_characters="\x00", exclude_categories=["Cs"])
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers() | FLOATS | st.text(CHARACTERS, max_size=12)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=8), inner, max_size=3),
    max_leaves=12,
)
GOOD: dict[str, Any] = NotificationDTO(
    title="t",
    message="m",
    booking_url="https://example.org",
    park_name="p",
    campsite_name=None,
    start_date=date(2027, 7, 1),
    end_date=date(2027, 7, 31),
    openings=(Opening(site(), tuple(july(10)), "https://example.org"),),
).to_json()


def paths_of(value: Any, before: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON document, the whole of it first."""
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [before, *(path for key, inner in items for path in paths_of(inner, (*before, key)))]


def spoilt(document: Any, path: tuple[str | int, ...], by: Any) -> Any:
    """The document with something else in one place."""
    if not path:
        return by
    changed = deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = by
    return changed


def _read(document: Any) -> None:
    """Reading gives an alert that can be used, or says that it is malformed."""
    try:
        alert = NotificationDTO.from_json(document)
    except MalformedPayload:
        return
    assert all(isinstance(site_id, str) for site_id in alert.nights())
    json.dumps(alert.to_json())


@given(JSON)
def test_any_json_is_an_alert_or_malformed(document: Any) -> None:
    _read(document)


@given(st.sampled_from(paths_of(GOOD)), JSON)
def test_an_alert_with_one_thing_wrong_is_an_alert_or_malformed(path: tuple[str | int, ...], by: Any) -> None:
    _read(spoilt(GOOD, path, by))


@given(st.sampled_from(paths_of(EARLIER)), JSON)
def test_an_earlier_payload_with_one_thing_wrong_is_read_or_malformed(path: tuple[str | int, ...], by: Any) -> None:
    _read(spoilt(EARLIER, path, by))


NEEDED: list[tuple[str | int, ...]] = [
    (),
    ("openings",),
    ("openings", 0),
    ("openings", 0, "campsite_id"),
    ("openings", 0, "nights"),
    ("start_date",),
]
MISFITS: list[tuple[tuple[str | int, ...], Any]] = [
    *((path, by) for path in NEEDED for by in (None, 7, True, {}, {"secret": 1})),
    *((path, by) for path in ((), ("openings", 0), ("start_date",)) for by in ("", "secret", [], ["secret"])),
    *((path, ["secret"]) for path in (("openings",), ("openings", 0, "nights"))),
    (("openings", 0, "nights"), "2027-07-10"),
]


@pytest.mark.parametrize(("path", "by"), MISFITS, ids=repr)
def test_what_no_alert_can_do_without_makes_it_malformed(path: tuple[str | int, ...], by: Any) -> None:
    with pytest.raises(MalformedPayload) as caught:
        NotificationDTO.from_json(spoilt(GOOD, path, by))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__  # the cause quotes what it could not read


# --- earlier payloads ------------------------------------------------------------------------------------


def test_an_earlier_payload_is_delivered(camp: Camp) -> None:
    camp.results({"1234": july(20, 21)})
    camp.alert(camp.camper(), payload=EARLIER, delivery_key="1234")
    camp.drain()
    ((recipient, message),) = camp.channel.sent
    assert recipient == KEY
    assert "044" in message.title
    assert message.items[0].endswith("Tue 20 Jul → Thu 22 Jul, 2 nights")
    assert message.url == EARLIER["booking_url"]
    assert camp.told() == {"1234": ["2027-07-20", "2027-07-21"]}
    assert camp.status() == "sent"


def test_of_an_earlier_payload_only_the_nights_still_held_are_told(camp: Camp) -> None:
    camp.results({"1234": july(21, 22), "101": july(20)})
    camp.alert(camp.camper(), payload=EARLIER, delivery_key="1234")
    camp.drain()
    assert camp.told() == {"1234": ["2027-07-21"]}


@pytest.mark.parametrize(
    ("wishes", "ended"),
    [
        ({"preferred_types": ["tent"]}, ("sent", None)),
        ({"preferred_types": ["rv"]}, ("skipped", "filters_unmatched")),
        ({"require_electric": True}, ("skipped", "filters_unmatched")),
        ({"require_accessible": True}, ("skipped", "filters_unmatched")),
        ({"min_stay_length": 2}, ("sent", None)),
        ({"min_stay_length": 3}, ("skipped", "filters_unmatched")),
        ({"people": 1}, ("skipped", "filters_unmatched")),  # unknown
    ],
)
def test_an_earlier_payload_is_filtered_by_its_metadata(
    camp: Camp, wishes: dict[str, Any], ended: tuple[str, str | None]
) -> None:
    camp.results({"1234": july(20, 21)})
    camp.alert(camp.camper(**wishes), payload=EARLIER, delivery_key="1234")
    camp.drain()
    assert camp.ended() == ended


def test_an_electric_and_accessible_earlier_site_passes_those_filters(camp: Camp) -> None:
    camp.results({"1234": july(20, 21)})
    metadata = EARLIER["metadata"] | {"is_electric": True, "is_accessible": True, "campsite_type": "STANDARD ELECTRIC"}
    camper = camp.camper(require_electric=True, require_accessible=True, preferred_types=["rv"])
    camp.alert(camper, payload={**EARLIER, "metadata": metadata}, delivery_key="1234")
    camp.drain()
    assert camp.status() == "sent"


def test_an_earlier_payload_without_a_name_is_delivered_too(camp: Camp) -> None:
    camp.results({"1234": july(20, 21)})
    camp.alert(camp.camper(), payload={**EARLIER, "campsite_name": None}, delivery_key="1234")
    camp.drain()
    assert camp.status() == "sent"


def test_an_earlier_payload_waits_retries_and_is_skipped_as_any_other(camp: Camp) -> None:
    camp.results({"1234": july(20, 21)})
    camper = camp.camper()
    camp.alert(camper, payload=EARLIER, delivery_key="1234", status="retry", attempt_count=2)
    camp.change_row(user_scans, camper.scan_id, is_active=False)
    camp.change_row(notification_channels, camper.channel_id, enabled=False)
    camp.drain()
    assert camp.ended() == ("skipped", "scan_inactive")


def test_a_moment_in_a_payload_is_aware() -> None:
    alert = NotificationDTO.from_json(GOOD | {"seen_at": "2027-07-01T12:00:00Z"})
    assert alert.seen_at == datetime(2027, 7, 1, 12, tzinfo=UTC)
