"""The outbox as an operator pages through it."""

from typing import Any
from uuid import UUID

import pytest

from chalicelib.db.paging import Cursor
from chalicelib.db.tables import notification_outbox
from chalicelib.outbox import reading
from tests.outbox.camp import Camp, later


def _rows(camp: Camp) -> list[UUID]:
    """Four rows of one moment, by id, and one of the next microsecond, which alone was sent."""
    camper = camp.camper()
    same = sorted(camp.alert(camper, delivery_key=str(number)) for number in range(4))
    moment = later(camp.clock(), microseconds=1)
    return [*same, camp.alert(camper, status="sent", created_at=moment, finished_at=moment)]


def _paged(camp: Camp, **how: Any) -> list[UUID]:
    found: list[UUID] = []
    after: Cursor | None = None
    while page := reading.page(camp.deps, after=after, limit=2, **how):
        found += [row.id for row in page]
        after = page[-1].created_at, page[-1].id
    return found


def test_rows_are_paged_oldest_first_even_where_moments_are_the_same(camp: Camp) -> None:
    assert _rows(camp) == _paged(camp)


def test_rows_are_paged_newest_first_even_where_moments_are_the_same(camp: Camp) -> None:
    assert _rows(camp)[::-1] == _paged(camp, newest_first=True)


@pytest.mark.parametrize("newest_first", [False, True])
def test_rows_of_one_status_are_paged_alone(camp: Camp, newest_first: bool) -> None:
    *pending, sent = _rows(camp)
    assert _paged(camp, status="sent", newest_first=newest_first) == [sent]
    in_order = pending[::-1] if newest_first else pending
    assert _paged(camp, status="pending", newest_first=newest_first) == in_order


def test_a_page_begins_after_its_cursor_though_that_row_is_gone(camp: Camp) -> None:
    first, second, *_ = _rows(camp)
    (row,) = reading.page(camp.deps, limit=1)
    camp.delete(notification_outbox, first)
    assert reading.page(camp.deps, after=(row.created_at, row.id), limit=1)[0].id == second


def test_a_row_says_when_it_was_written(camp: Camp) -> None:
    row_id = camp.alert(camp.camper())
    (row,) = reading.page(camp.deps)
    written = camp.clock().isoformat().replace("+00:00", "Z")
    assert row.to_json()["created_at"] == written
    assert reading.show(camp.deps, row_id).to_json()["created_at"] == written
