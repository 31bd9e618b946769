"""Pages: lists in the order in which things happened, the id last, so that a page can begin where another ended."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, tuple_

Cursor = tuple[datetime, UUID]
"""Where a page ended: the last row's moment and id."""


def paged(
    query: Select[Any],
    moment: ColumnElement[datetime],
    key: ColumnElement[UUID],
    *,
    after: Cursor | None,
    limit: int,
    newest_first: bool,
) -> Select[Any]:
    """The part of a query that begins after a cursor, in the order of `moment` and `key` or in the opposite one.

    Both are compared as one: an index on them leads straight to a page, however far it is from the first.
    """
    if after is not None:
        place = tuple_(moment, key)
        query = query.where(place < after if newest_first else place > after)
    order = (moment.desc(), key.desc()) if newest_first else (moment, key)
    return query.order_by(*order).limit(limit)
