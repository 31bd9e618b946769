"""A7: what a campsite is, what a scan wants of it, and which nights satisfy it."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, strategies as st

from chalicelib.stays.campsites import Campsite, Equipment, electric_by_type, types_of
from chalicelib.stays.filters import Filters

DAY = timedelta(days=1)
FIRST = date(2027, 7, 25)  # so that stays cross the end of a month
SITE = Campsite(
    "7",
    name="044",
    loop="Upper  Pines ",
    provider_type="STANDARD ELECTRIC",
    types=frozenset({"tent", "rv"}),
    electric=True,
    accessible=True,
    min_people=2,
    max_people=6,
    equipment=(Equipment("Trailer", 30), Equipment("Tent")),
)
UNKNOWN = Campsite("7")


# --- what a campsite is ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "types", "electric"),
    [
        ("STANDARD NONELECTRIC", {"tent", "rv"}, False),
        ("STANDARD ELECTRIC", {"tent", "rv"}, True),
        ("standard electric", {"tent", "rv"}, True),
        ("TENT ONLY NONELECTRIC", {"tent"}, False),
        ("TENT ONLY ELECTRIC", {"tent"}, True),
        ("RV NONELECTRIC", {"rv"}, False),
        ("RV ELECTRIC", {"rv"}, True),
        ("WALK TO", {"tent"}, None),
        ("HIKE TO", {"tent"}, None),
        ("BOAT IN", {"tent"}, None),
        ("CABIN NONELECTRIC", {"cabin"}, False),
        ("CABIN ELECTRIC", {"cabin"}, True),
        ("YURT", {"cabin"}, None),
        ("LOOKOUT", {"cabin"}, None),
        ("SHELTER NONELECTRIC", {"cabin"}, False),
        ("GROUP STANDARD NONELECTRIC", {"tent", "rv", "group"}, False),
        ("GROUP SHELTER ELECTRIC", {"cabin", "group"}, True),
        ("GROUP TENT ONLY AREA NONELECTRIC", {"tent", "group"}, False),
        ("GROUP RV AREA NONELECTRIC", {"rv", "group"}, False),
        ("EQUESTRIAN NONELECTRIC", {"other"}, False),
        ("MOORING", {"other"}, None),
        ("PARKING", {"other"}, None),
        ("Zone", {"other"}, None),
        (None, set(), None),
        ("", set(), None),
        (" ", set(), None),
    ],
)
def test_recreation_govs_words_mean(word: str | None, types: set[str], electric: bool | None) -> None:
    assert types_of(word) == types
    assert electric_by_type(word) is electric


@pytest.mark.parametrize(
    ("by_type", "hookup", "electric"),
    [
        (True, None, True),
        (False, None, False),
        (None, None, None),
        (False, True, True),
        (True, False, False),
        (None, True, True),
        (None, False, False),
    ],
)
def test_a_stated_hookup_beats_the_types_word(by_type: bool | None, hookup: bool | None, electric: bool | None) -> None:
    assert replace(SITE, electric=by_type).completed_by(replace(UNKNOWN, electric=hookup)).electric is electric


@pytest.mark.parametrize(
    ("permitted", "types"),
    [
        ([], {"tent", "rv", "group"}),
        (["Tent"], {"tent", "group"}),
        (["Small Tent", "Large Tent Over 9X12`"], {"tent", "group"}),
        (["Trailer"], {"rv", "group"}),
        (["RV/Motorhome", "Fifth Wheel", "Pop up", "Pickup Camper", "Caravan/Camper Van", "RV"], {"rv", "group"}),
        (["Tent", "RV"], {"tent", "rv", "group"}),
        (["Car", "Boat"], {"tent", "rv", "group"}),  # says nothing of either
        (["Car", "Tent"], {"tent", "group"}),
    ],
)
def test_permitted_equipment_narrows_tent_and_rv(permitted: list[str], types: set[str]) -> None:
    site = replace(UNKNOWN, types=frozenset({"tent", "rv", "group"}))
    metadata = replace(UNKNOWN, equipment=tuple(Equipment(name) for name in permitted))
    assert site.completed_by(metadata).types == types


def test_without_metadata_a_campsite_stays_as_the_answer_showed_it() -> None:
    assert SITE.completed_by(None) == SITE


def test_a_campsites_stored_form_brings_it_back() -> None:
    assert Campsite.from_json(SITE.to_json()) == SITE
    assert Campsite.from_json(UNKNOWN.to_json()) == UNKNOWN


def test_what_metadata_does_not_know_of_a_minimum_stay_the_answer_tells() -> None:
    assert replace(UNKNOWN, min_stay=3).completed_by(SITE).min_stay == 3
    assert UNKNOWN.completed_by(replace(SITE, min_stay=2)).min_stay == 2


def test_a_stored_site_from_before_minimum_stays_is_read() -> None:
    stored = SITE.to_json()
    del stored["min_stay"]
    assert Campsite.from_json(stored) == SITE


@pytest.mark.parametrize(("least", "too_short"), [(None, []), (1, []), (2, [0]), (3, [0, 2, 3])])
def test_runs_shorter_than_the_minimum_stay_are_too_short(least: int | None, too_short: list[int]) -> None:
    nights = [FIRST + DAY * day for day in (0, 2, 3)]
    assert replace(SITE, min_stay=least).too_short(nights) == tuple(FIRST + DAY * day for day in too_short)


# --- whether the campsite will do --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "admitted"),
    [
        (Filters(), True),
        (Filters(preferred_types=frozenset({"tent"})), True),
        (Filters(preferred_types=frozenset({"cabin", "rv"})), True),
        (Filters(preferred_types=frozenset({"cabin"})), False),
        (Filters(require_electric=True), True),
        (Filters(require_accessible=True), True),
        (Filters(people=1), False),
        (Filters(people=2), True),
        (Filters(people=6), True),
        (Filters(people=7), False),
        (Filters(equipment="trailer"), True),
        (Filters(equipment="rv"), True),  # stands for all of its kind
        (Filters(equipment="Boat"), False),
        (Filters(equipment="Trailer", equipment_length=30), True),
        (Filters(equipment="Trailer", equipment_length=31), False),
        (Filters(equipment="rv", equipment_length=31), False),
        (Filters(loops_wanted=frozenset({"upper pines"})), True),
        (Filters(loops_wanted=frozenset({"Lower Pines"})), False),
        (Filters(loops_unwanted=frozenset({"UPPER PINES"})), False),
        (Filters(loops_unwanted=frozenset({"Lower Pines"})), True),
        (Filters(campsites_wanted=frozenset({"044"})), True),
        (Filters(campsites_wanted=frozenset({"7", "9"})), True),
        (Filters(campsites_wanted=frozenset({"9"})), False),
        (Filters(campsites_unwanted=frozenset({"044"})), False),
        (Filters(campsites_unwanted=frozenset({"7"})), False),
        (Filters(campsites_unwanted=frozenset({"9"})), True),
    ],
)
def test_a_campsite_is_admitted(filters: Filters, admitted: bool) -> None:
    assert filters.admit(SITE) is admitted


@pytest.mark.parametrize(
    "filters",
    [
        Filters(preferred_types=frozenset({"tent", "rv", "cabin", "group", "other"})),
        Filters(require_electric=True),
        Filters(require_accessible=True),
        Filters(people=1),
        Filters(equipment="tent"),
        Filters(equipment="tent", equipment_length=1),
        Filters(loops_wanted=frozenset({"A"})),
        Filters(campsites_wanted=frozenset({"044"})),
    ],
)
def test_what_is_unknown_never_passes_a_filter_that_requires_it(filters: Filters) -> None:
    assert not filters.admit(UNKNOWN)


@pytest.mark.parametrize("most", [0, None])
def test_a_greatest_number_of_people_of_zero_or_none_is_unknown(most: int | None) -> None:
    assert not Filters(people=1).admit(replace(SITE, min_people=0, max_people=most))


def test_a_least_number_of_people_may_be_missing() -> None:
    assert Filters(people=1).admit(replace(SITE, min_people=None))


# --- which nights ------------------------------------------------------------------------------------------


def nights(*offsets: int) -> set[date]:
    return {FIRST + DAY * offset for offset in offsets}


@pytest.mark.parametrize(
    ("least", "there", "new", "told"),
    [
        (1, [0], [0], [0]),
        (1, [0, 1, 2], [1], [0, 1, 2]),
        (1, [0, 5], [5], [5]),  # an unrelated new night does not tell an announced run again
        (2, [0, 1, 5], [5], []),  # nor does it match by itself, when it is too short
        (2, [0, 1, 2], [2], [0, 1, 2]),
        (3, [0, 1], [0, 1], []),
        (4, [5, 6, 7, 8], [8], [5, 6, 7, 8]),  # 30 July to 2 August
        (2, [0, 1, 4, 5, 8, 9], [1, 8], [0, 1, 8, 9]),
        (1, [0, 1], [], []),
    ],
)
def test_a_run_that_is_long_enough_and_holds_a_new_night_is_told_whole(
    least: int, there: list[int], new: list[int], told: list[int]
) -> None:
    filters = Filters(min_stay_length=least)
    assert filters.matching_nights(SITE, nights(*there), nights(*new)) == nights(*told)


def test_a_campsite_that_will_not_do_matches_no_night() -> None:
    assert not Filters(people=9).matching_nights(SITE, nights(0, 1), nights(0, 1))


OFFSETS = st.sets(st.integers(0, 24), max_size=25)


@given(
    there=OFFSETS,
    new=OFFSETS,
    least=st.integers(1, 6),
    weekdays=st.sets(st.integers(0, 6), max_size=3),
)
def test_matching_equals_trying_every_stay(there: set[int], new: set[int], least: int, weekdays: set[int]) -> None:
    """A stay begins on a wanted weekday and lasts long enough; stays that share a night belong together."""
    new &= there
    filters = Filters(min_stay_length=least, arrival_weekdays=frozenset(weekdays))
    expected = set[int]()
    for run_start in there - {night + 1 for night in there}:
        run_end = next(night for night in range(run_start, 99) if night not in there)
        arrivals = [
            night
            for night in range(run_start, run_end)
            if run_end - night >= least and (not weekdays or (FIRST + DAY * night).weekday() in weekdays)
        ]
        slept = {night for arrival in arrivals for night in range(arrival, run_end)}
        if slept & new:
            expected |= slept
    assert filters.matching_nights(SITE, nights(*there), nights(*new)) == nights(*expected)
