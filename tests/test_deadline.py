import threading
import time
from collections.abc import Iterator

import pytest

from chalicelib.deadline import BodyTooLarge, DeadlinePassed, gather, within


def test_work_in_time_gives_its_result() -> None:
    assert within(5, lambda: "done") == "done"
    assert within(5, lambda: None) is None


def test_what_the_work_raises_is_raised() -> None:
    def work() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        within(5, work)


def test_a_result_that_is_an_exception_is_a_result() -> None:
    error = ValueError()
    assert within(5, lambda: error) is error


def test_work_that_takes_too_long_is_left_to_itself() -> None:
    go_on = threading.Event()
    began = time.monotonic()
    with pytest.raises(DeadlinePassed):
        within(0.05, lambda: go_on.wait(10))
    assert time.monotonic() - began < 5
    go_on.set()


def test_a_body_is_joined() -> None:
    assert gather([b"ab", b"", b"c"], until=time.monotonic() + 5, most=3) == b"abc"


def endless() -> Iterator[bytes]:
    while True:
        yield b"x"


def test_a_body_is_as_large_as_allowed() -> None:
    with pytest.raises(BodyTooLarge):
        gather(endless(), until=time.monotonic() + 5, most=1000)


def test_a_body_comes_in_time() -> None:
    with pytest.raises(DeadlinePassed):
        gather(endless(), until=time.monotonic() - 1, most=1000)
