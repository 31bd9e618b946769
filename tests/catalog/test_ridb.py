import io
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from chalicelib.catalog import ridb
from chalicelib.catalog.ridb import ExportError, ExportProblem
from tests.catalog.exports import address, area, area_address, as_csv, as_json, export, facility, zipped

FORMATS = ["json", "csv"]


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_campground_is_read_with_its_area_and_state(kind: str) -> None:
    read = ridb.read(
        export([facility("100", ParentRecAreaID="1")], [address("100", "CA")], [area("1")], kind=kind),
    )
    assert read.campgrounds == {"100": ridb.Campground("100", "Upper Pines", "1", "CA", 37.7, -119.5, reservable=True)}
    assert read.recreation_areas == {"1": ridb.RecreationArea("1", "Yosemite National Park", None, None, None)}
    assert read.oddities == {}


def test_only_enabled_campgrounds_are_taken(kind: str) -> None:
    read = ridb.read(
        export(
            [
                facility("1"),
                facility("2", Reservable=False),
                facility("3", Enabled=False),
                facility("4", FacilityTypeDescription="Ticket Facility"),
                facility("5", FacilityTypeDescription="Facility"),
            ],
            kind=kind,
        )
    )
    assert {known.id: known.reservable for known in read.campgrounds.values()} == {"1": True, "2": False}
    assert read.oddities == {}


@pytest.mark.parametrize("area_id", ["", "999"])
def test_no_campground_is_lost_for_a_missing_area_or_state(kind: str, area_id: str) -> None:
    read = ridb.read(export([facility("1", ParentRecAreaID=area_id)], areas=[area("7")], kind=kind))
    assert read.campgrounds["1"].recreation_area_id == (area_id or None)
    assert read.campgrounds["1"].state is None


def test_members_besides_facilities_may_be_missing(kind: str) -> None:
    encode = as_json if kind == "json" else as_csv
    read = ridb.read(zipped({f"Facilities_API_v1.{kind}": encode([facility("1", ParentRecAreaID="1")])}))
    assert list(read.campgrounds) == ["1"]
    assert read.oddities == {"member_missing": 3}


def test_the_state_is_the_campgrounds_own_else_its_areas(kind: str) -> None:
    read = ridb.read(
        export(
            [facility("own", ParentRecAreaID="1"), facility("areas", ParentRecAreaID="1"), facility("none")],
            [address("own", "TEXAS"), address("areas", "")],
            [area("1")],
            [area_address("1", "California")],
            kind=kind,
        )
    )
    assert {known.id: known.state for known in read.campgrounds.values()} == {"own": "TX", "areas": "CA", "none": None}
    assert read.recreation_areas["1"].state == "CA"


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_addresses_the_physical_one_tells_the_state(turned: bool) -> None:
    addresses = [address("1", "DC", "Mailing"), address("1", "MD", "Default"), address("1", "va", "Physical")]
    read = ridb.read(export([facility("1")], addresses[::-1] if turned else addresses))
    assert read.campgrounds["1"].state == "VA"


@pytest.mark.parametrize(
    ("latitude", "longitude", "known"),
    [
        (37.7, -119.5, True),
        ("37.70", "-119.50", True),
        (0, 0, False),
        (0.0, -119.5, False),
        ("", "", False),
        (None, None, False),
        ("north", -119.5, False),
        (91, -119.5, False),
        (37.7, -181, False),
        ("nan", "inf", False),
    ],
)
def test_impossible_coordinates_are_unknown(latitude: Any, longitude: Any, known: bool) -> None:
    read = ridb.read(export([facility("1", FacilityLatitude=latitude, FacilityLongitude=longitude)]))
    found = read.campgrounds["1"]
    assert (found.latitude, found.longitude) == ((37.7, -119.5) if known else (None, None))


def test_ids_are_opaque(kind: str) -> None:
    uuid_like = "0377bfa0-e64c-4d5e-9a3a-3c2f0a8f0c11"
    read = ridb.read(export([facility(uuid_like), facility("007"), facility(7)], kind=kind))  # type: ignore[arg-type]
    assert list(read.campgrounds) == [uuid_like, "007", "7"]


def test_names_are_tidied(kind: str) -> None:
    read = ridb.read(
        export([facility("1", " ELK  CREEK CAMPGROUND (RIO GRANDE NF)\x00"), facility("2", "")], kind=kind)
    )
    assert read.campgrounds["1"].name == "Elk Creek Campground (Rio Grande NF)"
    assert read.campgrounds["2"].name is None


def test_odd_records_are_counted_and_left_out() -> None:
    facilities = [
        "not a record",
        None,
        facility(""),
        facility("x" * 65),
        facility("flagless", Enabled=None),
        facility("good", "First"),
        facility("good", "Second"),
        {"FacilityTypeDescription": "Campground", "FacilityName": ["a list"], "FacilityID": "bare", "Enabled": "TRUE"},
    ]
    areas = [7, area("1", ""), area(""), area("2"), area("2")]
    read = ridb.read(export(facilities, areas=areas))
    assert {known.id: known.name for known in read.campgrounds.values()} == {"good": "First", "bare": None}
    assert read.campgrounds["bare"].reservable is None
    assert list(read.recreation_areas) == ["2"]
    assert read.oddities == {
        "unreadable_record": 3,
        "campground_without_id_or_flag": 3,
        "campground_twice": 1,
        "recreation_area_without_id_or_name": 2,
        "recreation_area_twice": 1,
    }


def test_csv_rows_of_another_length_are_counted_and_left_out() -> None:
    content = as_csv([facility("1")]) + b"2,too short\r\n\r\n" + b"3" + b",x" * 40 + b"\r\n"
    read = ridb.read(zipped({"Facilities_API_v1.csv": content}))
    assert list(read.campgrounds) == ["1"]
    assert read.oddities["unreadable_record"] == 2


def test_long_descriptions_and_broken_letters_do_no_harm(kind: str) -> None:
    encode = as_json if kind == "json" else as_csv
    content = encode([facility("1", "Haleakal@ Camp", FacilityDescription="long " * 60_000)]).replace(b"@", b"\xff")
    read = ridb.read(zipped({f"Facilities_API_v1.{kind}": b"\xef\xbb\xbf" + content}))
    assert read.campgrounds["1"].name == "Haleakal\N{REPLACEMENT CHARACTER} Camp"


def test_members_are_found_in_a_folder() -> None:
    assert ridb.read(zipped({"export/facilities_api_V1.JSON": as_json([facility("1")])})).campgrounds


def whole() -> bytes:
    return export([facility(str(number)) for number in range(500)]).getvalue()


def stored(content: bytes) -> bytes:
    return zipped({"Facilities_API_v1.json": content}, zipfile.ZIP_STORED).getvalue()


def altered() -> bytes:
    return stored(as_json([facility("1")])).replace(b"Upper Pines", b"Lower Pines")


UNUSABLE: list[tuple[str, bytes, ExportProblem]] = [
    ("empty", b"", ExportProblem.NOT_A_ZIP),
    ("a page", b"<!doctype html><title>Sorry</title>", ExportProblem.NOT_A_ZIP),
    ("cut short", whole()[:-400], ExportProblem.NOT_A_ZIP),
    ("only a beginning", whole()[:2000], ExportProblem.NOT_A_ZIP),
    ("altered", altered(), ExportProblem.DAMAGED),
    ("cut JSON", stored(as_json([facility("1"), facility("2")])[:-40]), ExportProblem.DAMAGED),
    ("no JSON", stored(b"<html>"), ExportProblem.DAMAGED),
    ("another zip", zipped({"Media_API_v1.json": b"{}"}).getvalue(), ExportProblem.NO_FACILITIES),
    ("nothing in it", stored(b'{"RECDATA":[]}'), ExportProblem.NO_CAMPGROUNDS),
    ("other JSON", stored(b'{"error": "sorry"}'), ExportProblem.NO_CAMPGROUNDS),
]


@pytest.mark.parametrize(("content", "problem"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_an_unusable_export_says_what_is_wrong(content: bytes, problem: ExportProblem) -> None:
    with pytest.raises(ExportError) as caught:
        ridb.read(io.BytesIO(content))
    assert caught.value.problem is problem


def test_no_altered_byte_raises_anything_else() -> None:
    content = whole()
    for place in range(0, len(content), 41):
        altered = bytearray(content)
        altered[place] ^= 0x41
        with suppress(ExportError):
            ridb.read(io.BytesIO(bytes(altered)))


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ExportError) as caught:
        ridb.read(tmp_path / "nothing.zip")
    assert caught.value.problem is ExportProblem.UNREADABLE


def test_progress_goes_up_to_the_whole(kind: str) -> None:
    told: list[tuple[int, int]] = []
    ridb.read(export([facility(str(n)) for n in range(900)], kind=kind), lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert len(told) > 4
    assert len({total for _, total in told}) == 1
    assert told[-1][0] == told[-1][1]


def test_a_big_member_is_never_in_memory_whole() -> None:
    records = [facility(str(number), FacilityDescription="x" * 40_000) for number in range(500)]
    file = export(records)
    del records
    tracemalloc.start()
    try:
        ridb.read(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000  # of 20 MB
