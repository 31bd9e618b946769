"""A19: a worker that finds nothing leaves, unless a fellow worker gave back a row that it may have passed over."""

from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from chalicelib.outbox.claim import KindFull
from chalicelib.outbox.looks import Looks

LONGEST = 20.0


class Fellow:
    """A worker whose look lasts until it is told how it ends."""

    def __init__(self, pool: ThreadPoolExecutor, looks: Looks) -> None:
        self._begun, self._go = Event(), Event()
        self._full: str | None = None
        self._end = pool.submit(self._look, looks)
        assert self._begun.wait(LONGEST)

    def ends(self, *, full: str | None = None) -> None:
        self._full = full
        self._go.set()
        with suppress(KindFull):
            self._end.result(LONGEST)

    def _look(self, looks: Looks) -> None:
        with looks.one():
            self._begun.set()
            assert self._go.wait(LONGEST)
            if self._full is not None:
                raise KindFull(self._full)


class Floor:
    """Workers of one run."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.looks = Looks()
        self._pool = pool

    def fellow(self) -> Fellow:
        return Fellow(self._pool, self.looks)

    def finds_nothing(self, full: Collection[str] = (), longest: float = LONGEST) -> Future[bool]:
        """A look that has just ended with nothing; gives whether there is another, once that is known."""
        with self.looks.one() as look:
            pass
        return self._pool.submit(self.looks.worth_another, look, full, longest)


@pytest.fixture
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(8)


@pytest.fixture
def floor(pool: ThreadPoolExecutor) -> Floor:
    return Floor(pool)


def test_a_worker_alone_does_not_look_twice(floor: Floor) -> None:
    assert floor.finds_nothing().result(LONGEST) is False


def test_a_worker_waits_for_the_looks_beside_its_own(floor: Floor) -> None:
    fellow = floor.fellow()
    again = floor.finds_nothing()
    assert not again.done()
    fellow.ends(full="pushover")
    assert again.result(LONGEST) is True


def test_a_fellow_that_keeps_its_row_is_no_reason_to_look_again(floor: Floor) -> None:
    fellow = floor.fellow()
    again = floor.finds_nothing()
    fellow.ends()
    assert again.result(LONGEST) is False


def test_a_row_that_came_back_during_the_look_is_a_reason(floor: Floor) -> None:
    fellow = floor.fellow()
    with floor.looks.one() as look:
        fellow.ends(full="pushover")
    assert floor.looks.worth_another(look, (), LONGEST) is True


def test_a_row_that_came_back_before_the_look_is_none(floor: Floor) -> None:
    floor.fellow().ends(full="pushover")
    assert floor.finds_nothing().result(LONGEST) is False


def test_a_row_of_a_kind_that_the_worker_leaves_alone_is_none(floor: Floor) -> None:
    fellow = floor.fellow()
    again = floor.finds_nothing(full={"pushover"})
    fellow.ends(full="pushover")
    assert again.result(LONGEST) is False


def test_nobody_waits_for_looks_that_begin_later(floor: Floor) -> None:
    fellow = floor.fellow()
    again = floor.finds_nothing()
    later = floor.fellow()
    fellow.ends()
    assert again.result(LONGEST) is False
    later.ends()


def test_the_first_row_that_comes_back_ends_the_wait(floor: Floor) -> None:
    fellow, slow = floor.fellow(), floor.fellow()
    again = floor.finds_nothing()
    fellow.ends(full="pushover")
    assert again.result(LONGEST) is True
    slow.ends()


def test_a_run_that_stops_waits_for_no_look(floor: Floor) -> None:
    fellow = floor.fellow()
    again = floor.finds_nothing()
    floor.looks.stop()
    assert again.result(LONGEST) is False
    fellow.ends(full="pushover")
    assert floor.finds_nothing().result(LONGEST) is False


def test_a_worker_waits_no_longer_than_its_time(floor: Floor) -> None:
    fellow = floor.fellow()
    assert floor.finds_nothing(longest=0).result(LONGEST) is False
    fellow.ends()
