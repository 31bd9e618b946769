import json
from datetime import date
from pathlib import Path

import pytest

from sandbox.booking_site import BookingSite
from tests.sandbox.conftest import Visitor

RECORDED = Path(__file__).parents[3] / "shared" / "recorded" / "recgov"
MONTH = (
    b'{"campsites": {"5":{"campsite_id":"5", "availabilities":{"2023-07-05T00:00:00Z": "Available"},'
    b'"campsite_rules":{"reservationWindow":{"start_date":"2023-01-01T00:00:00Z"}}}},\n "count":1}'
)
SEARCH = b'{"campsites":[{"campsite_id":"5","asset_name":"OLD MILL"}],"size":1,"total":1}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in {"availability/70_2023-07.json": MONTH, "campsites/70.json": SEARCH}.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_bytes(body)
    (tmp_path / "availability" / "71_2023-07.json").write_bytes(MONTH)
    return tmp_path


def test_recorded_bodies_come_byte_for_byte(site: BookingSite, visitor: Visitor, folder: Path) -> None:
    site.serve_recordings(folder)
    assert visitor.month("70", "2023-07-01").content == MONTH
    assert visitor.search("70").content == SEARCH


def test_years_move_in_night_keys_and_asked_months_and_nowhere_else(
    site: BookingSite, visitor: Visitor, folder: Path
) -> None:
    site.serve_recordings(folder, shift_years=9)
    body = visitor.month("70", "2032-07-01").content
    assert body == MONTH.replace(b"2023-07-05", b"2032-07-05")
    assert visitor.month("70", "2023-07-01").json() == {"campsites": {}, "count": 0}


def test_a_recorded_campground_has_the_name_that_its_campsites_tell_or_a_plain_one(
    site: BookingSite, visitor: Visitor, folder: Path
) -> None:
    site.serve_recordings(folder)
    assert visitor.campground("70").json()["campground"]["facility_name"] == "OLD MILL"
    assert visitor.campground("71").json()["campground"]["facility_name"] == "Campground 71"


def test_what_was_not_recorded_is_empty_for_known_campgrounds_and_not_found_for_others(
    site: BookingSite, visitor: Visitor, folder: Path
) -> None:
    site.serve_recordings(folder)
    assert visitor.month("70", "2023-08-01").json() == {"campsites": {}, "count": 0}
    assert "campsites" not in visitor.search("71").json()
    assert visitor.month("72", "2023-07-01").status_code == 404


def test_a_recorded_night_can_be_taken_and_nothing_else_changes(
    site: BookingSite, visitor: Visitor, folder: Path
) -> None:
    site.serve_recordings(folder, shift_years=9)
    site.take("70", "5", date(2032, 7, 5), after=1)
    first, second = visitor.month("70", "2032-07-01").json(), visitor.month("70", "2032-07-01").json()
    assert first["campsites"]["5"]["availabilities"] == {"2032-07-05T00:00:00Z": "Available"}
    first["campsites"]["5"]["availabilities"]["2032-07-05T00:00:00Z"] = "Reserved"
    assert second == first


def test_a_folder_that_is_not_there_is_refused(site: BookingSite, tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="no folder of recordings"):
        site.serve_recordings(tmp_path / "nowhere")


@pytest.mark.skipif(not RECORDED.is_dir(), reason="../shared/recorded, the real answers, are not beside this clone")
def test_every_real_recording_is_served_with_as_many_nights_of_each_status_in_later_years(
    site: BookingSite, visitor: Visitor
) -> None:
    site.serve_recordings(RECORDED, shift_years=10)
    paths = sorted(RECORDED.glob("availability/*.json"))
    assert paths
    for path in paths:
        campground_id, month = path.stem.split("_")
        year = int(month[:4]) + 10
        served = visitor.month(campground_id, f"{year}{month[4:]}-01").json()
        for key, record in json.loads(path.read_bytes())["campsites"].items():
            moved = {f"{int(night[:4]) + 10}{night[4:]}": status for night, status in record["availabilities"].items()}
            assert served["campsites"][key]["availabilities"] == moved
