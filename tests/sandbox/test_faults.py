import threading
import time
from datetime import date
from typing import Any

import httpx
import pytest

from sandbox.booking_site import BookingSite
from sandbox.campgrounds import Campground, Campsite
from sandbox.faults import KINDS, Fault, Kind, kinds_of
from tests.sandbox.conftest import MovingClock, Visitor, client

NIGHT = date(2030, 7, 5)
KEY = "2030-07-05T00:00:00Z"
DROPS = [Fault.DROP_BEFORE_HEADERS, Fault.DROP_AFTER_HEADERS, Fault.DROP_MIDWAY, Fault.RESET]


def ask(visitor: Visitor, kind: Kind) -> httpx.Response:
    return {"availability": visitor.month, "campsites": visitor.search, "campground": visitor.campground}[kind]()


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_strikes_where_it_can_and_then_the_site_is_well_again(
    site: BookingSite, visitor: Visitor, fault: Fault, kind: Kind
) -> None:
    good = ask(visitor, kind)
    if kind not in kinds_of(fault):
        with pytest.raises(ValueError, match="cannot happen"):
            site.misbehave(fault, on=kind)
        return
    site.misbehave(fault, on=kind, seconds=0.00001)
    start = time.monotonic()
    if fault in DROPS:
        with pytest.raises(httpx.TransportError):
            ask(visitor, kind)
    elif fault in {Fault.SLOW, Fault.DRIP}:
        assert ask(visitor, kind).json() == good.json()
        assert time.monotonic() - start >= 0.00001
    else:
        bad = ask(visitor, kind)
        assert (bad.status_code, bad.content) != (200, good.content)
    assert ask(visitor, kind).content == good.content


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_a_status_comes_empty_and_with_retry_after_only_if_told(
    site: BookingSite, visitor: Visitor, status: int
) -> None:
    site.misbehave(Fault.STATUS, status=status)
    site.misbehave(Fault.STATUS, status=status, retry_after=120)
    first, second = visitor.month(), visitor.month()
    assert (first.status_code, first.content) == (status, b"")
    assert "retry-after" not in first.headers
    assert second.headers["retry-after"] == "120"


def test_a_page_comes_with_another_status_or_with_200(site: BookingSite, visitor: Visitor) -> None:
    site.misbehave(Fault.STATUS_HTML, status=502)
    site.misbehave(Fault.CHALLENGE)
    for status in (502, 200):
        answer = visitor.month()
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.text.startswith("<!doctype html>")


def test_truncated_json_is_whole_http(site: BookingSite, visitor: Visitor) -> None:
    site.misbehave(Fault.TRUNCATED)
    answer = visitor.month()
    assert answer.status_code == 200
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        answer.json()


def month(site: BookingSite, visitor: Visitor, fault: Fault, campsite_id: str | None = None) -> dict[str, Any]:
    site.misbehave(fault, campsite_id=campsite_id, night=NIGHT)
    return visitor.month().json()


def test_a_month_can_be_empty_in_every_way(site: BookingSite, visitor: Visitor) -> None:
    assert month(site, visitor, Fault.EMPTY_OBJECT) == {}
    assert month(site, visitor, Fault.COUNT_ZERO) == {"campsites": {}, "count": 0}
    campsites = month(site, visitor, Fault.NO_NIGHTS)["campsites"]
    assert [record["availabilities"] for record in campsites.values()] == [{}, {}, {}]


def test_a_campsite_of_a_month_can_be_spoilt_and_the_others_stay(site: BookingSite, visitor: Visitor) -> None:
    good = visitor.month().json()["campsites"]
    for fault in (Fault.NULL_CAMPSITE, Fault.NULL_NIGHTS, Fault.NULL_STATUS, Fault.NULL_TYPE, Fault.UNKNOWN_STATUS):
        bad = month(site, visitor, fault, "12")["campsites"]
        assert bad.keys() == good.keys()
        assert [key for key in good if bad[key] != good[key]] == ["12"]
    assert month(site, visitor, Fault.NULL_CAMPSITE)["campsites"]["11"] is None
    assert month(site, visitor, Fault.NULL_NIGHTS)["campsites"]["11"]["availabilities"] is None
    assert month(site, visitor, Fault.NULL_TYPE)["campsites"]["11"]["campsite_type"] is None
    assert month(site, visitor, Fault.MISSING_CAMPSITE)["campsites"].keys() == {"12", "13"}


def test_one_night_of_a_campsite_can_be_spoilt_and_the_others_stay(site: BookingSite, visitor: Visitor) -> None:
    for fault, status in ((Fault.NULL_STATUS, None), (Fault.UNKNOWN_STATUS, "Held For Owls")):
        nights = month(site, visitor, fault)["campsites"]["11"]["availabilities"]
        assert {key: nights[key] for key in nights if nights[key] != "Reserved"} == {KEY: status}
    nights = month(site, visitor, Fault.MISSING_NIGHTS)["campsites"]["11"]["availabilities"]
    assert KEY not in nights
    assert len(nights) == 30


def test_ids_can_be_numbers(site: BookingSite, visitor: Visitor) -> None:
    assert [record["campsite_id"] for record in month(site, visitor, Fault.INT_IDS)["campsites"].values()] == [
        11,
        12,
        13,
    ]
    site.misbehave(Fault.INT_IDS, on="campsites")
    assert [record["campsite_id"] for record in visitor.search().json()["campsites"]] == [11, 12]


def test_a_fault_strikes_only_its_campground_and_kind_and_as_often_as_told(site: BookingSite, visitor: Visitor) -> None:
    site.add_campground(Campground("901", "Lynx Gap", (Campsite("21"),)))
    site.misbehave(Fault.STATUS, on="availability", campground_id="901", times=2)
    assert visitor.month("900").status_code == 200
    assert visitor.campground("901").status_code == 200
    assert [visitor.month("901").status_code for _ in range(3)] == [500, 500, 200]


def test_a_lasting_fault_ends_when_the_site_is_told_to_behave(site: BookingSite, visitor: Visitor) -> None:
    site.misbehave(Fault.STATUS, times=None)
    assert [ask(visitor, kind).status_code for kind in (*KINDS, *KINDS)] == [500] * 6
    site.behave()
    assert [ask(visitor, kind).status_code for kind in KINDS] == [200] * 3


def test_a_spoilt_answer_counts_towards_a_script_and_a_refusal_does_not(site: BookingSite, visitor: Visitor) -> None:
    site.open("900", "11", NIGHT, after=1)
    honest = visitor.http.headers["User-Agent"]
    visitor.http.headers["User-Agent"] = "httpx"
    visitor.month()
    visitor.http.headers["User-Agent"] = honest
    assert visitor.status(NIGHT) == "Reserved"
    site.take("900", "11", NIGHT, after=1)
    site.misbehave(Fault.CHALLENGE)
    visitor.month()
    assert visitor.status(NIGHT) == "Reserved"


def test_a_slow_answer_runs_into_a_short_timeout_and_a_dripping_one_does_not(
    site: BookingSite, visitor: Visitor
) -> None:
    site.misbehave(Fault.SLOW, seconds=5, on="campground")
    with pytest.raises(httpx.ReadTimeout):
        visitor.http.get("/api/camps/campgrounds/900", timeout=0.05)
    size = len(visitor.campground().content)
    site.misbehave(Fault.DRIP, seconds=0.0005, on="campground")
    start = time.monotonic()
    visitor.http.get("/api/camps/campgrounds/900", timeout=0.2)
    assert time.monotonic() - start >= size * 0.0005


def test_faults_are_shared_out_exactly_among_many_clients(clock: MovingClock) -> None:
    with BookingSite(now=clock) as site:
        site.add_campground(Campground("900", "Heron Bend"))
        site.misbehave(Fault.STATUS, times=10)
        statuses: list[int] = []

        def visit() -> None:
            with client(site.url) as http:
                statuses.extend(Visitor(http).month().status_code for _ in range(10))

        threads = [threading.Thread(target=visit) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(statuses) == [200] * 30 + [500] * 10
    assert len(site.requests) == 40
