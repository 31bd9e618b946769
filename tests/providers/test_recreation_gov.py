import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, strategies as st

from chalicelib.providers.contract import CampgroundRecord, CheckError, ProviderError
from chalicelib.providers.recreation_gov import (
    RecreationGov,
    RecreationGovConfig,
    read_campground,
    read_campsites,
    read_month,
)
from chalicelib.stays.campsites import Campsite, Equipment
from chalicelib.stays.nights import runs
from chalicelib.stays.openings import MonthAnswer
from sandbox.booking_site import BookingSite

SEPTEMBER = date(2030, 9, 1)
RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded"
ERRORS = RECORDED / "errors"

needs_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason=f"no recordings at {RECORDED}")


def site(nights: Any = None, **fields: Any) -> dict[str, Any]:
    usual = {
        "campsite_id": "7",
        "site": "044",
        "loop": "Alder",
        "campsite_type": "STANDARD NONELECTRIC",
        "type_of_use": "Overnight",
        "min_num_people": 1,
        "max_num_people": 6,
        "quantities": dict.fromkeys(nights, 1) if isinstance(nights, dict) else None,
    }
    return usual | {"availabilities": nights} | fields


def night(day: int, month: int = 9) -> str:
    return f"2030-{month:02d}-{day:02d}T00:00:00Z"


def month_of(campsites: Any) -> MonthAnswer:
    return read_month(json.dumps({"campsites": campsites}).encode(), SEPTEMBER)[0]


def nights_of(nights: Any, **fields: Any) -> frozenset[date] | None:
    return month_of({"7": site(nights, **fields)}).sites["7"].nights


def failure(read: Any, *args: Any) -> CheckError:
    with pytest.raises(ProviderError) as caught:
        read(*args)
    return caught.value.category


# --- nights -----------------------------------------------------------------------------------------------


def test_half_a_character_in_a_name_loses_nothing_else() -> None:
    nights = b'"availabilities": {"2023-09-01T00:00:00Z": "Available"}'
    body = b'{"campsites": {"1": {"site": "A\\ud83c 1", %s}, "2": {"site": "\\ud83c\\udfd5", %s}}}' % (nights, nights)
    answer, _ = read_month(body, date(2023, 9, 1))
    assert {site.campsite.name for site in answer.sites.values()} == {"A\ufffd 1", "\N{CAMPING}"}
    assert all(site.nights == {date(2023, 9, 1)} for site in answer.sites.values())


@pytest.mark.parametrize(
    ("status", "opens", "counted_as"),
    [
        ("Available", True, None),
        ("Reserved", False, None),
        ("NYR", False, None),
        ("Closed", False, None),
        ("Not Reservable", False, None),
        ("Not Reservable Management", False, None),
        ("Not Available", False, None),
        ("Not Available Cutoff", False, None),
        ("Lottery", False, None),
        ("Walk-up", False, None),
        ("Open", False, "status_open"),
        ("Checkout", False, "status_checkout"),
        ("Open (2 of 2)", False, "status_unknown"),
        ("available", False, "status_unknown"),
        ("AVAILABLE", False, "status_unknown"),
        ("Available ", False, "status_unknown"),
        ("", False, "status_unknown"),
    ],
)
def test_only_available_opens_a_night(status: str, opens: bool, counted_as: str | None) -> None:
    answer = month_of({"7": site({night(3): status})})
    assert answer.sites["7"].nights == (frozenset({date(2030, 9, 3)}) if opens else frozenset())
    assert answer.oddities == ({counted_as: 1} if counted_as else {})
    assert not answer.blank


@pytest.mark.parametrize("status", [None, 1, True, [], {}, ["Available"]])
def test_a_status_that_is_no_string_is_unknown(status: Any) -> None:
    answer = month_of({"7": site({night(3): status, night(4): "Available"}), "8": site({night(3): status})})
    assert answer.sites["7"].nights == {date(2030, 9, 4)}
    assert answer.sites["8"].nights is None
    assert answer.oddities == {"status_null": 2}


@pytest.mark.parametrize(
    "key", ["2030-09-03T00:00:00Z", "2030-09-03T23:00:00-08:00", "2030-09-03T00:00:00.000Z", "2030-09-03"]
)
def test_a_night_is_the_first_ten_characters_of_its_key(key: str) -> None:
    assert nights_of({key: "Available"}) == {date(2030, 9, 3)}


@pytest.mark.parametrize(
    ("key", "counted_as"),
    [
        ("", "night_key"),
        ("tomorrow", "night_key"),
        ("2030-09-31T00:00:00Z", "night_key"),
        ("2030-W36-1T00", "night_key"),
        ("20300903", "night_key"),
        ("٢٠٣٠-٠٩-٠٣", "night_key"),
        ("2030-10-01T00:00:00Z", "other_month"),
        ("2030-08-31T00:00:00Z", "other_month"),
        ("2029-09-03T00:00:00Z", "other_month"),
    ],
)
def test_a_key_that_is_no_night_of_the_month_is_counted_and_loses_no_other(key: str, counted_as: str) -> None:
    answer = month_of({"7": site({key: "Available", night(4): "Available"}), "8": site({key: "Available"})})
    assert answer.sites["7"].nights == {date(2030, 9, 4)}
    assert answer.sites["8"].nights is None  # nothing is said of any night of this month
    assert answer.oddities == {counted_as: 2}


@pytest.mark.parametrize("nights", [{}, None, [], "", 0, "Available"])
def test_a_site_without_nights_is_unknown(nights: Any) -> None:
    answer = month_of({"7": site(nights), "8": site({night(3): "Reserved"})})
    assert answer.sites["7"].nights is None
    assert answer.sites["8"].nights == frozenset()
    assert not answer.blank
    assert answer.oddities == ({} if nights == {} else {"nights_null": 1})


def test_quantities_open_nothing() -> None:
    assert nights_of({night(3): "NYR"}, quantities={night(3): 1, night(4): 5}) == frozenset()


# --- whole answers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [{}, {"campsites": None}, {"campsites": {}, "count": 0}, {"count": 3}])
def test_an_answer_without_campsites_is_blank(body: Any) -> None:
    answer, strangers = read_month(json.dumps(body).encode(), SEPTEMBER)
    assert answer == MonthAnswer(SEPTEMBER, {}, blank=True)
    assert strangers == []


@pytest.mark.parametrize(
    "body", ["[]", "null", "3", '"Available"', '{"campsites": []}', '{"campsites": "none"}', '{"campsites": 0}']
)
def test_an_answer_of_another_shape_is_malformed(body: str) -> None:
    assert failure(read_month, body.encode(), SEPTEMBER) is CheckError.MALFORMED


@pytest.mark.parametrize(
    ("body", "category"),
    [
        (b"", CheckError.NOT_JSON),
        (b'{"campsites": {"7": {"site"', CheckError.NOT_JSON),
        (b"<html><body>Hello</body></html>", CheckError.NOT_JSON),
        (b'\xff\xfe{"campsites": {}}', CheckError.NOT_JSON),
        (b"[" * 100_000, CheckError.NOT_JSON),
        (b"challenge without a page", CheckError.NOT_JSON),
        (b'<script src="/.azwaf/js/challenge.js">', CheckError.BLOCKED),
        (b"<title>Please solve this CAPTCHA</title>", CheckError.BLOCKED),
    ],
)
def test_what_is_no_json_is_told_apart_by_what_it_wants(body: bytes, category: CheckError) -> None:
    assert failure(read_month, body, SEPTEMBER) is category
    assert failure(read_campsites, body) is category
    assert failure(read_campground, body, "900") is category


@needs_recordings
@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("goingtocamp_azure_waf_challenge.html", CheckError.BLOCKED),
        ("recgov_403_cloudfront.html", CheckError.BLOCKED),
        ("rate_limited_429_empty.txt", CheckError.NOT_JSON),
    ],
)
def test_recorded_pages_with_status_200_are_understood(name: str, category: CheckError) -> None:
    assert failure(read_month, (ERRORS / name).read_bytes(), SEPTEMBER) is category


@pytest.mark.parametrize("record", [None, [], "gone", 7, False])
def test_a_record_that_is_none_is_unknown_and_loses_no_other(record: Any) -> None:
    answer = month_of({"7": record, "8": site({night(3): "Available"})})
    assert answer.sites["7"].nights is None
    assert answer.sites["8"].nights == {date(2030, 9, 3)}
    assert answer.oddities == {"record_null": 1}


def test_an_answer_of_odd_records_alone_is_blank() -> None:
    answer = month_of({"7": None, "8": site(None), "9": site({})})
    assert answer.blank
    assert set(answer.sites) == {"7", "8", "9"}


# --- campsites --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"type_of_use": "Day"},
        {"type_of_use": " DAY "},
        {"hide_external": True},
        {"campsite_type": "MANAGEMENT"},
        {"campsite_type": "Management "},
    ],
)
def test_sites_that_nobody_can_sleep_on_are_left_out_and_still_speak_for_the_answer(fields: dict[str, Any]) -> None:
    answer = month_of({"7": site({night(3): "Available"}, **fields)})
    assert answer.sites == {}
    assert not answer.blank


@pytest.mark.parametrize("fields", [{"hide_external": False}, {"hide_external": None}, {"type_of_use": None}])
def test_other_sites_are_in(fields: dict[str, Any]) -> None:
    assert nights_of({night(3): "Available"}, **fields) == {date(2030, 9, 3)}


def test_a_campsite_is_described_as_far_as_the_month_goes() -> None:
    described = site({}, site="044 ", loop="Upper Pines  ", campsite_type="GROUP STANDARD ELECTRIC", max_num_people=30)
    assert month_of({"7": described}).sites["7"].campsite == Campsite(
        "7",
        name="044",
        loop="Upper Pines",
        provider_type="GROUP STANDARD ELECTRIC",
        types=frozenset({"tent", "rv", "group"}),
        electric=True,
        min_people=1,
        max_people=30,
    )


def test_a_campsite_of_nulls_is_known_by_its_id() -> None:
    empty = dict.fromkeys(site(), None)
    answer = month_of({"7": empty | {"availabilities": {night(3): "Available"}}})
    assert answer.sites["7"].campsite == Campsite("7", name="7")
    assert answer.sites["7"].nights == {date(2030, 9, 3)}
    assert answer.oddities == {"site_field": 3}


@pytest.mark.parametrize(
    ("least", "most", "read"),
    [
        (1, 6, (1, 6)),
        (0, 6, (0, 6)),
        (1, 0, (1, None)),
        (None, None, (None, None)),
        (-1, -6, (None, None)),
        ("2", "8", (2, 8)),
        (2.0, 2.5, (2, None)),
        (True, [], (None, None)),
        (1, 10**400, (1, None)),
    ],
)
def test_numbers_of_people_are_known_or_unknown(least: Any, most: Any, read: tuple[int | None, int | None]) -> None:
    campsite = month_of({"7": site({}, min_num_people=least, max_num_people=most)}).sites["7"].campsite
    assert (campsite.min_people, campsite.max_people) == read


def test_control_characters_are_taken_out_of_names() -> None:
    campsite = (
        month_of({"7": site({}, site="A\x0001\n", loop="\x1bNorth\tLoop\x7f", campsite_type="TENT\x00 ONLY")})
        .sites["7"]
        .campsite
    )
    assert (campsite.name, campsite.loop, campsite.provider_type) == ("A01", "North Loop", "TENT ONLY")


@pytest.mark.parametrize("key", ["", "9" * 129, "7\x00", "7\n"])
def test_a_campsite_without_a_usable_id_is_counted_and_left_out(key: str) -> None:
    answer = month_of({key: site({night(3): "Available"}), "8": site({night(3): "Available"})})
    assert set(answer.sites) == {"8"}
    assert answer.oddities == {"site_id": 1}


def test_the_key_of_the_map_is_the_id() -> None:
    assert set(month_of({"7": site({}, campsite_id=8), "x-1": site({}, campsite_id=None)}).sites) == {"7", "x-1"}


def rules(value: Any = 4, **said: Any) -> dict[str, Any]:
    season = {"start_date": "2030-04-27T00:00:00Z", "end_date": "2030-11-22T00:00:00Z"}
    rule = {"value": value, "units": "consecutive nights", "secondary_value": "strict", **season, **said}
    return {"minConsecutiveStay": rule, "overrideFacilityStayRules": {"value": 1}}


@pytest.mark.parametrize(
    ("said", "nights"),
    [
        (rules(), 4),
        (rules("4"), 4),
        (rules(secondary_value=""), 4),
        (rules(secondary_value="soft"), None),  # where the gap is shorter, it may well be booked
        (rules(start_date="0001-01-01T00:00:00Z", end_date="0001-01-01T00:00:00Z"), 4),
        (rules(start_date=None, end_date=None, units=None), 4),
        (rules(end_date="2030-08-31T00:00:00Z"), None),
        (rules(end_date="2030-09-01T00:00:00Z"), 4),
        (rules(start_date="2030-09-30T00:00:00Z"), 4),
        (rules(start_date="2030-10-01T00:00:00Z"), None),
        (rules(units="days before arrival"), None),
        *[(rules(value), None) for value in (None, 0, 1, -4, 366, "four", [], True)],
        *[(said, None) for said in (None, {}, [], "strict", {"minConsecutiveStay": None}, {"minConsecutiveStay": []})],
    ],
)
def test_a_strict_minimum_stay_in_season_is_the_sites_own(said: Any, nights: int | None) -> None:
    answer = month_of({"7": site({night(3): "Available"}, campsite_rules=said)})
    assert answer.sites["7"].campsite.min_stay == nights
    assert answer.sites["7"].nights == {date(2030, 9, 3)}


@needs_recordings
def test_recorded_minimum_stays_are_those_in_season() -> None:
    found = {
        path.stem: {site.campsite.min_stay for site in answer.sites.values()} - {None}
        for path in sorted((RECORDED / "recgov" / "availability").glob("*_2023-09.json"))
        if (answer := read_month(path.read_bytes(), date(2023, 9, 1))[0])
    }
    assert {stem: nights for stem, nights in found.items() if nights} == {
        "233232_2023-09": {3},
        "234483_2023-09": {4},
        "234487_2023-09": {4},
    }


# --- metadata ---------------------------------------------------------------------------------------------


def found(**fields: Any) -> Campsite:
    record = {"campsite_id": "7", "name": "044", "loop": "Alder", "type": "STANDARD ELECTRIC"}
    return read_campsites(json.dumps({"campsites": [record | fields]}).encode()).campsites["7"]


def attributes(**named: Any) -> list[dict[str, Any]]:
    return [{"attribute_name": name.replace("_", " "), "attribute_value": value} for name, value in named.items()]


@pytest.mark.parametrize(
    ("value", "electric"),
    [
        ("50", True),
        ("30 amp", True),
        ("20/30/50", True),
        ("Yes", True),
        (30, True),
        ("", False),
        ("N/A", False),
        ("n/a ", False),
        ("No", False),
        ("0", False),
        (None, False),
        ("by arrangement", None),
    ],
)
def test_a_hookup_that_is_named_decides(value: Any, electric: bool | None) -> None:
    assert found(attributes=attributes(Electricity_Hookup=value)).electric is electric


@pytest.mark.parametrize(
    "listed", [None, [], "none", [None, 3], attributes(Electric_Heating="Y"), [{"attribute_name": None}]]
)
def test_without_a_hookup_the_type_decides(listed: Any) -> None:
    assert found(attributes=listed).electric is None


@pytest.mark.parametrize(
    ("value", "accessible"),
    [
        ("true", True),
        ("false", False),
        ("TRUE ", True),
        (True, True),
        (False, False),
        ("", None),
        (None, None),
        (1, None),
    ],
)
def test_accessible_is_a_string(value: Any, accessible: bool | None) -> None:
    assert found(accessible=value).accessible is accessible


def test_people_are_attributes_here() -> None:
    campsite = found(attributes=attributes(Min_Num_of_People="7", Max_Num_of_People="30"))
    assert (campsite.min_people, campsite.max_people) == (7, 30)


def test_equipment_without_a_length_has_no_limit() -> None:
    listed = [
        {"equipment_name": "Tent", "max_length": 0},
        {"equipment_name": "RV", "max_length": 35},
        {"equipment_name": "Trailer", "max_length": None},
        {"equipment_name": None, "max_length": 10},
        None,
    ]
    assert found(permitted_equipment=listed).equipment == (Equipment("Tent"), Equipment("RV", 35), Equipment("Trailer"))


@pytest.mark.parametrize("body", ["{}", '{"campsites": null, "size": 0}', '{"campsites": []}'])
def test_a_campground_may_publish_no_campsites(body: str) -> None:
    assert read_campsites(body.encode()).campsites == {}


@pytest.mark.parametrize("body", ["[]", "null", '{"campsites": {}}', '{"campsites": "x"}'])
def test_metadata_of_another_shape_is_malformed(body: str) -> None:
    assert failure(read_campsites, body.encode()) is CheckError.MALFORMED


# --- a campground's record --------------------------------------------------------------------------------


def test_a_record_is_read() -> None:
    facility = {
        "facility_name": "UPPER PINES",
        "facility_time_zone": "America/Los_Angeles",
        "facility_latitude": 37.7,
        "facility_longitude": "-119.5",
        "parent_asset_id": 2991,
    }
    assert read_campground(json.dumps({"campground": facility}).encode(), "232447") == CampgroundRecord(
        "232447", "Upper Pines", "America/Los_Angeles", 37.7, -119.5, "2991"
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"facility_latitude": 0, "facility_longitude": 0.0},
        {"facility_latitude": 137, "facility_longitude": 1},
        {"facility_latitude": "north", "facility_longitude": None},
        {"facility_latitude": 10**400, "facility_longitude": [1]},
        {"facility_latitude": "nan", "facility_longitude": "inf"},
        {"facility_time_zone": "../../etc/passwd"},
        {"facility_time_zone": 8},
        {"parent_asset_id": ""},
        {"parent_asset_id": {}},
    ],
)
def test_of_an_odd_record_the_name_remains(odd: dict[str, Any]) -> None:
    body = json.dumps({"campground": {"facility_name": "Upper Pines"} | odd}).encode()
    assert read_campground(body, "232447") == CampgroundRecord("232447", "Upper Pines")


@pytest.mark.parametrize(
    "body", [{}, {"campground": None}, {"campground": {}}, {"campground": {"facility_name": " \x00"}}]
)
def test_a_record_without_a_name_is_not_found(body: Any) -> None:
    assert failure(read_campground, json.dumps(body).encode(), "1") is CheckError.NOT_FOUND


@pytest.mark.parametrize("body", ["[]", "null", '{"campground": []}', '{"campground": "x"}'])
def test_a_record_of_another_shape_is_malformed(body: str) -> None:
    assert failure(read_campground, body.encode(), "1") is CheckError.MALFORMED


# --- anything at all --------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=12)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def records(*names: str) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, anything))


nights = st.dictionaries(
    st.sampled_from([night(3), night(9), night(1, 10), "2030-09-04"]) | texts,
    st.sampled_from(["Available", "Open"]) | anything,
)
month_records = st.fixed_dictionaries(
    {},
    optional={"availabilities": nights | anything}
    | dict.fromkeys(
        ("site", "loop", "campsite_type", "type_of_use", "min_num_people", "max_num_people", "hide_external"), anything
    ),
)
found_records = st.fixed_dictionaries(
    {},
    optional={
        "attributes": st.lists(records("attribute_name", "attribute_value") | anything) | anything,
        "permitted_equipment": st.lists(records("equipment_name", "max_length") | anything) | anything,
    }
    | dict.fromkeys(("campsite_id", "asset_name", "name", "loop", "type", "type_of_use", "accessible"), anything),
)
facility_records = records(
    "facility_name", "facility_time_zone", "facility_latitude", "facility_longitude", "parent_asset_id"
)


def never_raises_anything_else(read: Any, content: Any, *args: Any) -> None:
    with suppress(ProviderError):
        read(json.dumps(content).encode(), *args)


@given(content=anything | st.fixed_dictionaries({"campsites": st.dictionaries(texts, month_records | anything)}))
def test_no_month_raises_anything_but_a_provider_error(content: Any) -> None:
    never_raises_anything_else(read_month, content, SEPTEMBER)


@given(content=anything | st.fixed_dictionaries({"campsites": st.lists(found_records | anything)}))
def test_no_metadata_raises_anything_but_a_provider_error(content: Any) -> None:
    never_raises_anything_else(read_campsites, content)


@given(content=anything | st.fixed_dictionaries({"campground": facility_records | anything}))
def test_no_record_raises_anything_but_a_provider_error(content: Any) -> None:
    never_raises_anything_else(read_campground, content, "1")


@given(body=st.binary(max_size=40))
def test_no_bytes_raise_anything_but_a_provider_error(body: bytes) -> None:
    for read in (partial(read_month, month=SEPTEMBER), read_campsites, partial(read_campground, campground_id="1")):
        with suppress(ProviderError):
            read(body)


# --- recorded answers -------------------------------------------------------------------------------------


def golden_rows() -> list[list[str]]:
    """The Recreation.gov table: file, sites, pairs, sites with a run of one, of two, of three, longest, statuses."""
    if not RECORDED.is_dir():
        return []
    lines = (RECORDED / "EXPECTED.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if re.match(r"\| `\d+_\d{4}-\d\d\.json` \|", line)]
    return [[cell.strip("` ") for cell in row] for row in rows]


def recorded_month(name: str) -> tuple[MonthAnswer, dict[str, Any]]:
    body = (RECORDED / "recgov" / "availability" / name).read_bytes()
    return read_month(body, date.fromisoformat(f"{name.partition('_')[2][:7]}-01"))[0], json.loads(body)["campsites"]


@needs_recordings
def test_the_expected_table_covers_every_recording() -> None:
    recorded = {path.name for path in (RECORDED / "recgov" / "availability").glob("*.json")}
    assert {row[0] for row in golden_rows()} == recorded


@needs_recordings
@pytest.mark.parametrize("row", golden_rows(), ids=lambda row: row[0])
def test_a_recorded_month_holds_the_expected_nights(row: list[str]) -> None:
    name, sites, pairs, with_one, with_two, with_three, longest, statuses = row
    answer, raw = recorded_month(name)
    # The table counts every record; those that nobody can sleep on are added back from the raw body.
    kept = {key for key, record in raw.items() if record["campsite_type"] == "MANAGEMENT"}
    assert set(answer.sites) == set(raw) - kept
    by_site = {key: site.nights or frozenset[date]() for key, site in answer.sites.items()} | {
        key: frozenset(
            date.fromisoformat(at[:10])
            for at, status in (raw[key]["availabilities"] or {}).items()
            if status == "Available"
        )
        for key in kept
    }
    lengths = {key: max(map(len, runs(found)), default=0) for key, found in by_site.items()}
    assert len(raw) == int(sites)
    assert sum(map(len, by_site.values())) == int(pairs)
    assert [sum(length >= least for length in lengths.values()) for least in (1, 2, 3)] == [
        int(with_one),
        int(with_two),
        int(with_three),
    ]
    if longest != "—":
        campsite_id, first, length = longest.split(", ")
        assert max(lengths.values()) == int(length)
        assert any(
            run[0] == date.fromisoformat(first) and len(run) == int(length) for run in runs(by_site[campsite_id])
        )
    told = dict(re.findall(r"([A-Za-z ]+?) (\d+)(?:, |$)", statuses))
    assert answer.oddities == ({"status_open": int(told["Open"])} if "Open" in told else {})
    assert answer.blank == (statuses == "none (all empty)")


@needs_recordings
def test_recorded_nights_are_those_of_a_bare_loop() -> None:
    for path in sorted((RECORDED / "recgov" / "availability").glob("*.json")):
        answer, raw = recorded_month(path.name)
        for campsite_id, site in answer.sites.items():
            listed = raw[campsite_id]["availabilities"]
            bare = {date.fromisoformat(key[:10]) for key, status in listed.items() if status == "Available"}
            assert site.nights == (bare if listed else None), (path.name, campsite_id)


@needs_recordings
def test_recorded_metadata_is_understood() -> None:
    campsites: dict[str, Campsite] = {}
    names: set[str | None] = set()
    for path in sorted((RECORDED / "recgov" / "campsites").glob("*.json")):
        metadata = read_campsites(path.read_bytes())
        assert set(metadata.campsites) == {
            record["campsite_id"] for record in json.loads(path.read_bytes())["campsites"]
        }
        assert metadata.oddities == {}
        campsites |= metadata.campsites
        names.add(metadata.campground_name)
    assert len(campsites) == 935
    assert Counter(site.accessible for site in campsites.values()) == {False: 887, True: 48}
    assert Counter(site.electric for site in campsites.values()) == {None: 902, True: 33}
    assert {"Upper Pines Campground", "Kachess", "Forbes Creek", "Elk Creek Campground (Rio Grande NF)"} <= names


@needs_recordings
def test_a_recorded_site_is_completed_by_its_recorded_metadata() -> None:
    answer, _ = recorded_month("234708_2023-09.json")
    metadata = read_campsites((RECORDED / "recgov" / "campsites" / "234708.json").read_bytes())
    completed = [site.campsite.completed_by(metadata.campsites.get(key)) for key, site in answer.sites.items()]
    assert sum(site.electric is True for site in completed) == 31
    assert all(site.accessible is not None for site in completed)


# --- on the wire ------------------------------------------------------------------------------------------


@pytest.fixture
def booking_site() -> Iterator[BookingSite]:
    with BookingSite(now=lambda: datetime(2023, 4, 22, tzinfo=UTC)) as site:
        yield site


@pytest.fixture
def adapter(booking_site: BookingSite) -> Iterator[RecreationGov]:
    with httpx.Client(trust_env=False, verify=False) as client:
        yield RecreationGov(client, RecreationGovConfig(base_url=booking_site.url, user_agent="sitebell (tests)"))


@needs_recordings
@pytest.mark.parametrize("campground_id", ["232447", "234708", "232463"])
def test_recordings_come_over_http_as_from_the_file(
    booking_site: BookingSite, adapter: RecreationGov, campground_id: str
) -> None:
    booking_site.serve_recordings(RECORDED / "recgov")
    answer, _ = recorded_month(f"{campground_id}_2023-09.json")
    assert adapter.availability(campground_id, date(2023, 9, 1)).read() == answer
    assert adapter.campsites(campground_id).campsites


def test_requests_are_as_the_site_wants_them(booking_site: BookingSite, adapter: RecreationGov) -> None:
    for question in (
        lambda: adapter.availability("232447", date(2030, 9, 17)).read(),
        lambda: adapter.campsites("232447"),
        lambda: adapter.campground("a/b"),
    ):
        with suppress(ProviderError):  # nothing is offered here: this is about what is asked
            question()
    assert [f"{request.path}?{request.query}" for request in booking_site.requests] == [
        "/api/camps/availability/campground/232447/month?start_date=2030-09-01T00%3A00%3A00.000Z",
        "/api/search/campsites?start=0&size=1000&fq=asset_id%3A232447&include_non_site_specific_campsites=True",
        "/api/camps/campgrounds/a%2Fb?",
    ]
    for request in booking_site.requests:
        assert request.user_agent == "sitebell (tests)"
        assert "cookie" not in request.headers


def test_an_unknown_status_is_logged_once_and_printably(
    adapter: RecreationGov, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    body = json.dumps({"campsites": {"7": site({night(day): "Held for \x1b[31mOwls\n" + "x" * 99 for day in (3, 4)})}})
    with httpx.Client(verify=False, transport=httpx.MockTransport(lambda _: httpx.Response(200, text=body))) as client:
        provider = RecreationGov(
            client, RecreationGovConfig(base_url="http://127.0.0.1", user_agent="sitebell (tests)")
        )
        for _ in range(2):
            assert provider.availability("900", SEPTEMBER).read().oddities == {"status_unknown": 2}
    [record] = caplog.records
    assert record.getMessage().endswith("not available: Held for ?[31mOwls?" + "x" * 21)


@pytest.mark.parametrize(("status", "action"), [(202, "challenge"), (405, "captcha")])
def test_a_firewall_that_wants_a_person_blocks(status: int, action: str) -> None:
    answer = httpx.Response(status, headers={"x-amzn-waf-action": action})
    with httpx.Client(verify=False, transport=httpx.MockTransport(lambda _: answer)) as client:
        provider = RecreationGov(
            client, RecreationGovConfig(base_url="http://127.0.0.1", user_agent="sitebell (tests)")
        )
        assert failure(provider.availability, "900", SEPTEMBER) is CheckError.BLOCKED


def test_a_body_without_end_is_given_up() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 1024 * 1024

    with httpx.Client(
        verify=False, transport=httpx.MockTransport(lambda _: httpx.Response(200, content=endless()))
    ) as client:
        provider = RecreationGov(
            client, RecreationGovConfig(base_url="http://127.0.0.1", user_agent="sitebell (tests)")
        )
        assert failure(provider.availability, "900", SEPTEMBER) is CheckError.MALFORMED
