"""Nights, runs and months: `d` is slept from `d` to `d + 1`, and checkout is no night."""

from datetime import date, timedelta

import pytest
from hypothesis import given, strategies as st

from chalicelib.stays.nights import months, runs, stay_words

DAY = timedelta(days=1)
NIGHTS = st.sets(st.dates(date(2027, 6, 20), date(2027, 8, 10)), max_size=40)


@given(NIGHTS)
def test_runs_hold_every_night_once_in_order(nights: set[date]) -> None:
    assert [night for run in runs(nights) for night in run] == sorted(nights)


@given(NIGHTS)
def test_a_run_is_a_maximal_stretch_of_consecutive_nights(nights: set[date]) -> None:
    for run in runs(nights):
        assert [night - run[0] for night in run] == [DAY * index for index in range(len(run))]
        assert run[0] - DAY not in nights
        assert run[-1] + DAY not in nights


def test_a_run_goes_on_over_the_end_of_a_month_and_a_year() -> None:
    assert len(runs([date(2027, 12, 30) + DAY * index for index in range(5)])) == 1


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (date(2027, 7, 1), date(2027, 7, 2), ["2027-07"]),
        (date(2027, 7, 31), date(2027, 8, 1), ["2027-07"]),  # checkout on the 1st: the last night is of July
        (date(2027, 7, 31), date(2027, 8, 2), ["2027-07", "2027-08"]),
        (date(2027, 8, 30), date(2027, 9, 2), ["2027-08", "2027-09"]),
        (date(2027, 12, 31), date(2028, 3, 1), ["2027-12", "2028-01", "2028-02"]),
        (date(2028, 2, 29), date(2028, 3, 1), ["2028-02"]),
        (date(2027, 7, 5), date(2027, 7, 5), []),
    ],
)
def test_only_months_with_a_night_in_them_are_asked_for(start: date, end: date, expected: list[str]) -> None:
    assert [f"{month:%Y-%m}" for month in months(start, end)] == expected
    assert all(month.day == 1 for month in months(start, end))


@given(st.dates(date(2026, 1, 1), date(2028, 12, 31)), st.integers(1, 400))
def test_months_are_those_of_the_nights(start: date, length: int) -> None:
    nights = [start + DAY * index for index in range(length)]
    assert months(start, start + DAY * length) == sorted({night.replace(day=1) for night in nights})


@pytest.mark.parametrize(
    ("first", "length", "words"),
    [
        (date(2027, 9, 3), 3, "Fri 3 Sep → Mon 6 Sep, 3 nights"),
        (date(2027, 9, 30), 1, "Thu 30 Sep → Fri 1 Oct, 1 night"),
    ],
)
def test_a_run_is_said_as_arrival_and_checkout(first: date, length: int, words: str) -> None:
    assert stay_words(tuple(first + DAY * index for index in range(length))) == words
