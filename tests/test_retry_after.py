from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from chalicelib.retry_after import LONGEST, moment_of, retry_after

NOW = datetime(2030, 6, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("0", timedelta(0)),
        ("120", timedelta(minutes=2)),
        (" 120 ", timedelta(minutes=2)),
        ("1.2", timedelta(seconds=2)),  # never earlier than told
        ("9" * 18, LONGEST),
        ("Mon, 10 Jun 2030 12:01:00 GMT", timedelta(minutes=1)),
        ("Monday, 10-Jun-30 12:01:00 GMT", timedelta(minutes=1)),
        ("Mon Jun 10 12:01:00 2030", timedelta(minutes=1)),
        ("Mon, 10 Jun 2030 14:01:00 +0200", timedelta(minutes=1)),
        ("Mon, 10 Jun 2999 12:00:00 GMT", LONGEST),
    ],
)
def test_a_hint_is_understood(value: str, wait: timedelta) -> None:
    assert retry_after(value, NOW) == wait


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "-1",
        "+5",
        "1e3",
        "٣",
        "9" * 40,
        "soon",
        "2 minutes",
        "Mon, 10 Jun 2030 12:00:00 GMT",
        "Mon, 10 Jun 2030 11:59:59 GMT",
        "Mon, 99 Jun 2030 12:00:00 GMT",
        "Mon, 10 Jun 99999 12:00:00 GMT",
    ],
)
def test_garbage_negatives_and_the_past_say_nothing(value: str | None) -> None:
    assert retry_after(value, NOW) is None


@given(value=st.text(max_size=40) | st.from_regex(r"\w{3}, \d+ \w{3} \d+ \d+:\d+:\d+ [+-]?\w*"))
def test_nothing_raises(value: str) -> None:
    wait = retry_after(value, NOW)
    assert wait is None or timedelta(0) <= wait <= LONGEST


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (str(int(NOW.timestamp()) + 60), NOW + timedelta(minutes=1)),
        (str(int(NOW.timestamp())), None),
        ("1", None),
        (str(int(NOW.timestamp()) * 1000), None),  # milliseconds
        ("9" * 20, None),
        ("never", None),
        (None, None),
    ],
)
def test_a_reset_is_a_moment_to_come(value: str | None, moment: datetime | None) -> None:
    assert moment_of(value, NOW) == moment
