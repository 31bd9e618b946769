"""An alert said back: in good English, and with every wish."""

from dataclasses import fields, replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from chalicelib.scans.request import ScanRequest
from chalicelib.scans.sentence import WEEKDAYS, sentence
from chalicelib.stays.campsites import TYPES
from chalicelib.stays.filters import Filters

SEPTEMBER = (date(2027, 9, 3), date(2027, 9, 13))


def said(
    *, dates: tuple[date, date] = SEPTEMBER, mode: str = "summary", today: date | None = None, **filters: Any
) -> str:
    request = ScanRequest("recreation_gov", "232447", *dates, Filters(**filters), mode)
    return sentence(request, "Upper Pines", None, today=today)


def test_an_alert_is_said_back_in_one_sentence() -> None:
    wishes = Filters(2, frozenset({"tent"}), require_electric=True)
    assert sentence(ScanRequest("recreation_gov", "1", *SEPTEMBER, wishes), "Upper Pines", "Pushover") == (
        "Any tent site at Upper Pines with electricity, 2 nights or more between Fri 3 and Mon 13 Sep 2027,"
        " told to Pushover"
    )


def test_a_campground_without_a_name_is_called_by_its_id_and_no_channel_is_made_up() -> None:
    request = ScanRequest("recreation_gov", "232447", *SEPTEMBER)
    assert sentence(request, None, None) == (
        "Any site at campground 232447, 1 night or more between Fri 3 and Mon 13 Sep 2027"
    )


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({}, "Any site at Upper Pines, 1 night or more between"),
        ({"min_stay_length": 2}, ", 2 nights or more between"),
        ({"preferred_types": {"rv"}}, "Any RV site at"),
        ({"preferred_types": {"tent", "rv"}}, "Any RV or tent site at"),
        ({"preferred_types": {"tent", "rv", "cabin"}}, "Any cabin, RV or tent site at"),
        ({"require_accessible": True, "preferred_types": {"group"}}, "Any accessible group site at"),
        ({"require_electric": True}, "at Upper Pines with electricity,"),
        ({"people": 1}, "at Upper Pines for 1 person,"),
        ({"people": 2}, "at Upper Pines for 2 people,"),
        ({"equipment": "Trailer"}, "at Upper Pines that takes Trailer,"),
        ({"equipment": "Trailer", "equipment_length": 30}, "that takes Trailer of 30 feet,"),
        ({"equipment": "Trailer", "equipment_length": 1}, "that takes Trailer of 1 foot,"),
        ({"loops_wanted": {"A"}}, ", in loop A,"),
        ({"loops_wanted": {"Loop A", "loop B"}}, ", in Loop A or loop B,"),
        ({"loops_unwanted": {"B", "a", "C"}}, ", not in loop a, B or C,"),
        ({"campsites_wanted": {"044"}}, ", only site 044,"),
        ({"campsites_wanted": {"044", "012"}}, ", only sites 012 and 044,"),
        ({"campsites_unwanted": {"044"}}, ", not site 044,"),
        ({"arrival_weekdays": {4}}, ", 1 night or more from a Friday on between"),
        ({"arrival_weekdays": {5, 4}, "min_stay_length": 3}, ", 3 nights or more from a Friday or Saturday on between"),
    ],
)
def test_each_wish_has_its_words(wishes: dict[str, Any], words: str) -> None:
    frozen: dict[str, Any] = {name: frozenset(it) if isinstance(it, set) else it for name, it in wishes.items()}
    assert words in said(**frozen)


def test_one_message_a_site_is_said_where_it_is_wanted() -> None:
    assert said(mode="direct").endswith(", one message a site")
    assert "message" not in said()


@pytest.mark.parametrize(
    ("first", "checkout", "this_year", "words"),
    [
        ((2027, 9, 3), (2027, 9, 4), None, "between Fri 3 and Sat 4 Sep 2027"),
        ((2027, 9, 3), (2027, 9, 13), 2027, "between Fri 3 and Mon 13 Sep"),
        ((2027, 9, 3), (2027, 9, 13), 2026, "between Fri 3 and Mon 13 Sep 2027"),
        ((2027, 9, 30), (2027, 10, 4), 2027, "between Thu 30 Sep and Mon 4 Oct"),
        ((2027, 9, 30), (2027, 10, 4), None, "between Thu 30 Sep and Mon 4 Oct 2027"),
        ((2027, 12, 31), (2028, 1, 3), 2027, "between Fri 31 Dec 2027 and Mon 3 Jan 2028"),
        ((2027, 9, 3), (2028, 9, 13), 2028, "between Fri 3 Sep 2027 and Wed 13 Sep 2028"),
    ],
)
def test_what_both_dates_share_is_said_once_and_this_year_not_at_all(
    first: tuple[int, int, int], checkout: tuple[int, int, int], this_year: int | None, words: str
) -> None:
    today = date(this_year, 5, 1) if this_year else None
    assert said(dates=(date(*first), date(*checkout)), today=today).endswith(f" {words}")


# --- nothing unsaid --------------------------------------------------------------------------------------------------

NAMES = st.frozensets(st.from_regex(r"[A-Z][A-Za-z0-9]{0,8}", fullmatch=True), max_size=4)
FILTERS = st.builds(
    Filters,
    min_stay_length=st.integers(1, 30),
    preferred_types=st.frozensets(st.sampled_from(TYPES)),
    require_electric=st.booleans(),
    require_accessible=st.booleans(),
    people=st.none() | st.integers(1, 99),
    equipment=st.sampled_from(["tent", "Trailer", "RV/Motorhome"]),
    equipment_length=st.none() | st.integers(1, 99),
    loops_wanted=NAMES,
    loops_unwanted=NAMES,
    campsites_wanted=NAMES,
    campsites_unwanted=NAMES,
    arrival_weekdays=st.frozensets(st.integers(0, 6)),
)


def _say(filters: Filters) -> str:
    return sentence(ScanRequest("recreation_gov", "1", *SEPTEMBER, filters), "Upper Pines", "Pushover")


@given(FILTERS, FILTERS)
def test_no_wish_is_left_unsaid(one: Filters, other: Filters) -> None:
    """Two that differ in one wish alone are said differently, whatever the others are."""
    for field in fields(Filters):
        changed = replace(one, **{field.name: getattr(other, field.name)})
        assert (_say(changed) == _say(one)) == (changed == one), field.name


@given(FILTERS)
def test_every_name_and_number_is_in_the_sentence(filters: Filters) -> None:
    words = _say(filters)
    named = filters.loops_wanted | filters.loops_unwanted | filters.campsites_wanted | filters.campsites_unwanted
    numbers = {str(number) for number in (filters.people, filters.equipment_length) if number is not None}
    days = {WEEKDAYS[day] for day in filters.arrival_weekdays}
    for said_ in named | numbers | days | {str(filters.equipment), str(filters.min_stay_length)}:
        assert said_ in words


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(1, 1100), st.booleans())
def test_other_dates_are_other_words(first: date, nights: int, later: bool) -> None:
    dates = (first, first + timedelta(days=nights))
    moved = (first, dates[1] + timedelta(days=1)) if later else (first - timedelta(days=1), dates[1])
    assert said(dates=dates) != said(dates=moved)
