"""Finds campgrounds and recreation areas by name and place, whatever the case, accents and order of the words."""

import unicodedata
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, case, delete, func, insert, literal, select

from chalicelib.catalog.states import STATES
from chalicelib.db.engine import Database
from chalicelib.db.tables import campgrounds, recreation_areas, search as search_table

RECREATION_AREA = "recreation_area"
CAMPGROUND = "campground"

RANK_RECREATION_AREA = 1000  # and one more for each of its campgrounds
RANK_RESERVABLE = 100  # a campground for which alerts make sense, or which somebody has looked up

LONGEST_QUERY = 200  # characters; a name is shorter


@dataclass(frozen=True, slots=True)
class Found:
    """One hit. `place` is a campground's recreation area, `state` two letters in the US; None: unknown."""

    provider: str
    kind: str
    entity_id: str
    name: str
    place: str | None
    state: str | None


def search(database: Database, text: str, limit: int = 20) -> list[Found]:
    """What matches every word of the text, each word being the beginning of one in the name or the place.

    Best first: the very name, a name that begins with the text, then by rank. A recreation area that matches comes
    before its campgrounds, whatever their names.
    """
    query = normalise(text[:LONGEST_QUERY])
    if not query:
        return []
    with database.reading() as connection:
        return [Found(**row) for row in connection.execute(_statement(query, limit)).mappings()]


def _statement(query: str, limit: int) -> Select[*tuple[Any, ...]]:
    """One pass over the terms; names of places are joined to the hits alone."""
    tier = _tier(query).label("tier")
    best_first = [
        tier,
        search_table.c.rank.desc(),
        search_table.c.name,
        search_table.c.provider,
        search_table.c.entity_id,
    ]
    hits = (
        select(*search_table.c["provider", "kind", "entity_id", "name", "rank"], tier)
        .where(_every_word(query, "% {}%"))
        .order_by(*best_first)
        .limit(limit)
        .subquery("hits")
    )
    at_campground = and_(
        hits.c.kind == CAMPGROUND,
        campgrounds.c.provider == hits.c.provider,
        campgrounds.c.campground_id == hits.c.entity_id,
    )
    at_area = and_(
        recreation_areas.c.provider == hits.c.provider,
        recreation_areas.c.recreation_area_id
        == case((hits.c.kind == CAMPGROUND, campgrounds.c.recreation_area_id), else_=hits.c.entity_id),
    )
    return (
        select(
            *hits.c["provider", "kind", "entity_id", "name"],
            case((hits.c.kind == CAMPGROUND, recreation_areas.c.name)).label("place"),
            func.coalesce(campgrounds.c.state, recreation_areas.c.state).label("state"),
        )
        .outerjoin(campgrounds, at_campground)
        .outerjoin(recreation_areas, at_area)
        .order_by(hits.c.tier, hits.c.rank.desc(), hits.c.name, hits.c.provider, hits.c.entity_id)
    )


def _tier(query: str) -> ColumnElement[int]:
    """0 for the very name, 1 for one that begins so, 2 for the rest.

    A campground whose area matches too is in no better tier than that; within a tier, the area's rank puts it first.
    """
    like = search_table.c.terms.like
    own = case((like(f"{query} |%"), 0), (like(f"{query}%"), 1), else_=2)
    of_area = case((like(f"%| {query} /%"), 0), (like(f"%| {query}%"), 1), else_=2)
    area_matches = (search_table.c.kind == CAMPGROUND) & _every_word(query, "%|% {}%")
    return case((area_matches & (of_area > own), of_area), else_=own)


def _every_word(query: str, pattern: str) -> ColumnElement[bool]:
    """Words are letters and digits, so that no wildcard is among them."""
    terms = literal(" ") + search_table.c.terms
    return and_(*[terms.like(pattern.format(word)) for word in dict.fromkeys(query.split())])


# --- what is searched ------------------------------------------------------------------------------------------------
# `terms` reads `upper pines campground | yosemite national park / ca california`: name, area and states, with no other
# sign in any of them.


class Area(NamedTuple):
    """A campground's recreation area, as search needs it."""

    name: str
    state: str | None


_JOINING = dict.fromkeys(map(ord, "'`´‘’ʻʼʹ′"))  # noqa: RUF001  # look-alikes are the point
"""Marks inside a word: O'Brien is one, and so is Hawai'i, however its okina is typed."""

_PLAIN = str.maketrans(
    {
        "&": " and ",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "\N{LATIN SMALL LETTER DOTLESS I}": "i",
    }
)
"""What is written differently without taking an accent off."""


def normalise(text: str) -> str:
    """Words as they are compared: lower case, without accents, apostrophes and signs, one space between.

    >>> normalise("  Haleakalā Nat'l Park & CAMP-ground ")
    'haleakala natl park and camp ground'
    """
    folded = unicodedata.normalize("NFKD", text.translate(_JOINING).casefold()).casefold()
    bare = "".join(letter for letter in folded if not unicodedata.combining(letter))
    plain = bare.translate(_JOINING).translate(_PLAIN)
    return " ".join("".join(letter if letter.isalnum() else " " for letter in plain).split())


def make_findable(connection: Connection, provider: str, campground_id: str) -> None:
    """Write anew the search row of a campground that has a name, from what the catalogue holds of it.

    One that is no longer enabled gets none.
    """
    known = connection.execute(
        select(
            *campgrounds.c["name", "state", "reservable", "enabled"],
            recreation_areas.c.name.label("area_name"),
            recreation_areas.c.state.label("area_state"),
        )
        .outerjoin(
            recreation_areas,
            and_(
                recreation_areas.c.provider == campgrounds.c.provider,
                recreation_areas.c.recreation_area_id == campgrounds.c.recreation_area_id,
            ),
        )
        .where(campgrounds.c.provider == provider, campgrounds.c.campground_id == campground_id)
    ).one()
    row = search_row(
        provider,
        CAMPGROUND,
        campground_id,
        known.name,
        state=known.state,
        area=Area(known.area_name, known.area_state) if known.area_name else None,
        rank=0 if known.reservable is False else RANK_RESERVABLE,
    )
    key = [search_table.c[column] == row[column] for column in ("provider", "kind", "entity_id")]
    connection.execute(delete(search_table).where(*key))
    if known.enabled:
        connection.execute(insert(search_table), row)


def search_row(
    provider: str, kind: str, entity_id: str, name: str, *, state: str | None, rank: int, area: Area | None = None
) -> dict[str, Any]:
    """A row of the `search` table; `area` is a campground's."""
    states = dict.fromkeys(
        word for code in (state, area and area.state) if code for word in (code, STATES.get(code, ""))
    )
    return {
        "provider": provider,
        "kind": kind,
        "entity_id": entity_id,
        "name": name,
        "terms": f"{normalise(name)} | {normalise(area.name if area else '')} / {normalise(' '.join(states))}",
        "rank": rank,
    }
