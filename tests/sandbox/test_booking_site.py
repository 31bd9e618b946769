from datetime import date, timedelta

import pytest

from sandbox.booking_site import BookingSite
from sandbox.campgrounds import Campground
from sandbox.wire import Request
from tests.sandbox.conftest import MovingClock, Visitor, client

NIGHT = date(2030, 7, 5)


def test_a_month_has_every_campsite_and_every_night_of_that_month_and_no_other(visitor: Visitor) -> None:
    body = visitor.month().json()
    assert body["count"] == 3
    assert list(body["campsites"]) == ["11", "12", "13"]
    nights = body["campsites"]["11"]["availabilities"]
    assert [*nights][0::30] == ["2030-07-01T00:00:00Z", "2030-07-31T00:00:00Z"]
    assert set(nights.values()) == {"Reserved"}


def test_a_campsite_in_a_month_tells_its_type_loop_use_and_whether_it_is_hidden(visitor: Visitor) -> None:
    record = visitor.month().json()["campsites"]["12"]
    assert record["campsite_id"] == "12"
    assert record["site"] == "B02"
    assert record["campsite_type"] == "STANDARD ELECTRIC"
    assert record["type_of_use"] == "Overnight"
    assert record["hide_external"] is True


def test_nights_before_today_are_dropped_as_the_clock_moves(visitor: Visitor, clock: MovingClock) -> None:
    assert visitor.status(date(2030, 6, 9)) is None
    assert visitor.status(date(2030, 6, 10)) == "Reserved"
    clock.move(days=1)
    assert visitor.status(date(2030, 6, 10)) is None
    clock.move(days=60)
    assert visitor.month(start_date="2030-06-01").json()["campsites"]["11"]["availabilities"] == {}


@pytest.mark.parametrize("status", ["Available", "NYR", "Open", "Not Reservable Management", "Lottery"])
def test_a_night_has_the_status_it_was_given_and_a_quantity_that_means_nothing(
    site: BookingSite, visitor: Visitor, status: str
) -> None:
    site.set("900", "11", NIGHT, status)
    record = visitor.month().json()["campsites"]["11"]
    assert record["availabilities"]["2030-07-05T00:00:00Z"] == status
    assert record["quantities"]["2030-07-05T00:00:00Z"] == 1
    assert record["availabilities"]["2030-07-06T00:00:00Z"] == "Reserved"


def test_several_nights_open_and_are_taken_at_once(site: BookingSite, visitor: Visitor) -> None:
    nights = [NIGHT, NIGHT + timedelta(days=1)]
    site.open("900", "11", nights)
    assert [visitor.status(night) for night in nights] == ["Available", "Available"]
    site.take("900", "11", nights)
    assert [visitor.status(night) for night in nights] == ["Reserved", "Reserved"]


def test_a_night_opens_and_closes_after_as_many_answers_as_scripted(site: BookingSite, visitor: Visitor) -> None:
    site.open("900", "11", NIGHT, after=1)
    site.take("900", "11", NIGHT, after=3)
    seen = [visitor.status(NIGHT) for _ in range(5)]
    assert seen == ["Reserved", "Available", "Available", "Reserved", "Reserved"]


def test_answers_for_another_month_do_not_count_towards_a_script(site: BookingSite, visitor: Visitor) -> None:
    site.open("900", "11", NIGHT, after=1)
    visitor.month(start_date="2030-08-01")
    assert [visitor.status(NIGHT), visitor.status(NIGHT)] == ["Reserved", "Available"]


def test_a_night_opens_and_closes_at_the_scripted_moments(
    site: BookingSite, visitor: Visitor, clock: MovingClock
) -> None:
    site.take("900", "11", NIGHT, at=clock() + timedelta(minutes=5))
    site.open("900", "11", NIGHT, at=clock() + timedelta(minutes=2))
    seen: list[str | None] = []
    for _ in range(4):
        seen.append(visitor.status(NIGHT))
        clock.move(minutes=2)
    assert seen == ["Reserved", "Available", "Available", "Reserved"]


def test_a_flickering_night_opens_again_and_again_until_it_is_set(
    site: BookingSite, visitor: Visitor, clock: MovingClock
) -> None:
    start = clock() + timedelta(minutes=1)
    site.flicker("900", "11", NIGHT, start=start, open_for=timedelta(minutes=2), taken_for=timedelta(minutes=1))
    seen: list[bool] = []
    for _ in range(7):
        seen.append(visitor.status(NIGHT) == "Available")
        clock.move(minutes=1)
    assert seen == [False, True, True, False, True, True, False]
    site.take("900", "11", NIGHT)
    assert visitor.status(NIGHT) == "Reserved"


def test_telling_of_a_campsite_that_is_not_offered_is_refused(site: BookingSite) -> None:
    with pytest.raises(LookupError, match="no campsite 99 at campground 900"):
        site.open("900", "99", NIGHT)
    with pytest.raises(LookupError, match="at campground 901"):
        site.open("901", "11", NIGHT)


def test_the_search_lacks_management_sites_and_tells_equipment_and_attributes(visitor: Visitor) -> None:
    body = visitor.search().json()
    assert [record["campsite_id"] for record in body["campsites"]] == ["11", "12"]
    assert body["total"] == body["size"] == 2
    alder, birch = body["campsites"]
    assert alder["accessible"] == "true"
    assert alder["permitted_equipment"] == [{"equipment_name": "Tent", "max_length": 0}]
    assert [(a["attribute_name"], a["attribute_value"]) for a in birch["attributes"]] == [("Electricity Hookup", "30")]


def test_the_search_has_no_campsites_key_when_there_are_none(site: BookingSite, visitor: Visitor) -> None:
    site.add_campground(Campground("902", "Bare Hill"))
    for campground_id in ("902", "nobody"):
        body = visitor.search(campground_id).json()
        assert "campsites" not in body
        assert body["total"] == 0


def test_the_search_goes_by_pages(visitor: Visitor) -> None:
    body = visitor.http.get("/api/search/campsites", params={"start": 1, "size": 1, "fq": "asset_id:900"}).json()
    assert [record["campsite_id"] for record in body["campsites"]] == ["12"]
    assert (body["start"], body["size"], body["total"]) == ("1", 1, 2)


def test_a_campground_tells_its_name_place_zone_and_rules(site: BookingSite, visitor: Visitor) -> None:
    rules = {"maxConsecutiveStay": {"value": 14, "units": "nights"}}
    site.add_campground(Campground("903", "Lynx Gap", time_zone="America/Denver", parent_asset_id="77", rules=rules))
    record = visitor.campground("903").json()["campground"]
    assert record["facility_id"] == "903"
    assert record["facility_name"] == "Lynx Gap"
    assert record["facility_time_zone"] == "America/Denver"
    assert record["parent_asset_id"] == "77"
    assert record["is_deactivated"] is False
    assert record["facility_rules"] == rules


def test_unknown_campgrounds_and_paths_are_not_found(visitor: Visitor) -> None:
    for answer in (visitor.month("nobody"), visitor.campground("nobody"), visitor.http.get("/api/else")):
        assert answer.status_code == 404
        assert answer.json() == {"error": "Not Found"}


def test_a_raw_colon_in_the_query_is_refused(site: BookingSite, visitor: Visitor) -> None:
    url = f"{site.url}/api/camps/availability/campground/900/month?start_date=2030-07-01T00:00:00.000Z"
    request = visitor.http.build_request("GET", url)
    request.url = request.url.copy_with(raw_path=url.removeprefix(site.url).encode())
    answer = visitor.http.send(request)
    assert ":" in site.requests[-1].query
    assert answer.status_code == 400
    assert answer.json() == {"error": "query not encoded"}


@pytest.mark.parametrize("start_date", ["2030-07-02", "2030-07-32", "", "July"])
def test_a_start_that_is_no_first_of_a_month_is_refused(visitor: Visitor, start_date: str) -> None:
    assert visitor.month(start_date=start_date).status_code == 400


@pytest.mark.parametrize("user_agent", ["", "python-requests/2", "Python-urllib/3.11", "python-httpx/0.28", "httpx"])
def test_a_library_or_nobody_is_refused_with_a_page(visitor: Visitor, user_agent: str) -> None:
    visitor.http.headers["User-Agent"] = user_agent
    for answer in (visitor.month(), visitor.search(), visitor.campground()):
        assert answer.status_code == 403
        assert answer.headers["content-type"].startswith("text/html")


def test_beyond_the_limit_it_answers_429_until_everyone_has_been_silent(clock: MovingClock) -> None:
    with (
        BookingSite(now=clock, per_minute=3, silence=timedelta(minutes=6)) as site,
        client(site.url) as http,
    ):
        site.add_campground(Campground("900", "Heron Bend"))
        visitor = Visitor(http)
        assert [visitor.month().status_code for _ in range(4)] == [200, 200, 200, 429]
        assert visitor.campground().status_code == 200  # not throttled
        clock.move(minutes=5)
        refused = visitor.search()
        assert (refused.status_code, refused.content) == (429, b"")
        assert "retry-after" not in refused.headers
        clock.move(minutes=5)  # ten since the first refusal, but five since the last
        assert visitor.month().status_code == 429
        clock.move(minutes=6)
        assert visitor.month().status_code == 200


def test_a_pace_below_the_limit_is_never_refused(clock: MovingClock) -> None:
    with (
        BookingSite(now=clock, per_minute=2) as site,
        client(site.url) as http,
    ):
        for _ in range(6):
            assert Visitor(http).search().status_code == 200
            clock.move(seconds=30)


def test_every_request_is_logged_and_shown_to_the_hook_before_it_is_answered(
    site: BookingSite, visitor: Visitor, clock: MovingClock
) -> None:
    shown: list[Request] = []

    def look(request: Request) -> None:
        shown.append(request)
        site.open("900", "11", NIGHT)  # comes early enough for the answer in the making

    site.on_request = look
    assert visitor.status(NIGHT) == "Available"
    [request] = site.requests
    assert shown == [request]
    assert request.method == "GET"
    assert request.path == "/api/camps/availability/campground/900/month"
    assert request.query == "start_date=2030-07-01T00%3A00%3A00.000Z"
    assert request.params == {"start_date": ["2030-07-01T00:00:00.000Z"]}
    assert request.user_agent == "sitebell-tests (someone@example.org)"
    assert request.at == clock()
