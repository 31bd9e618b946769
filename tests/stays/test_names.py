import doctest

import pytest
from hypothesis import given, strategies as st

from chalicelib.stays import names
from chalicelib.stays.names import LONGEST, plain_text, tidy_name


@pytest.mark.parametrize(
    ("told", "tidy"),
    [
        ("UPPER PINES", "Upper Pines"),
        ("KACHESS", "Kachess"),
        ("ELK CREEK CAMPGROUND (RIO GRANDE NF)", "Elk Creek Campground (Rio Grande NF)"),
        ("ST. MARY'S LAKE (WA)", "St. Mary's Lake (WA)"),
        ("SAND HOLLOW SP, UT", "Sand Hollow SP, UT"),
        ("LAKE O' THE PINES II", "Lake O' the Pines II"),
        ("LEWIS AND CLARK", "Lewis and Clark"),
        ("THE POINT OF ROCKS - THE LOOP", "The Point of Rocks - The Loop"),
        ("O'BRIEN", "O'Brien"),
        ("MCCALL", "McCall"),
        ("MT. HOOD", "Mt. Hood"),
        ("B.J. TUCKER", "B.J. Tucker"),
        ("SALT-LICK RV PARK", "Salt-Lick RV Park"),
        ("CIVIL MIX LAKE VIII", "Civil Mix Lake VIII"),
        ("PLATORO  CABIN 1 ", "Platoro Cabin 1"),
        ("KOA", "KOA"),
        ("A001", "A001"),
        ("Upper Pines", "Upper Pines"),
        ("Mather NP", "Mather NP"),
        ("57 & 58", "57 & 58"),
        ("", ""),
    ],
)
def test_capitals_become_title_case_and_nothing_else_changes(told: str, tidy: str) -> None:
    assert tidy_name(told) == tidy


@given(st.text(st.characters()))
def test_a_plain_text_can_be_stored_anywhere(text: str) -> None:
    plain = plain_text(text)
    assert "\x00" not in plain
    assert plain == plain.strip()
    assert len(plain) <= LONGEST
    plain.encode()


@given(st.text(st.characters()) | st.text("ABCVIX '.-,()"))
def test_a_tidy_name_stays_as_it_is(name: str) -> None:
    assert tidy_name(tidy_name(name)) == tidy_name(name)


def test_the_examples_hold() -> None:
    assert doctest.testmod(names).failed == 0
