from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from sqlalchemy import insert

from chalicelib.catalog.search import Found, normalise, search
from chalicelib.catalog.sync import sync
from chalicelib.db.engine import Database
from chalicelib.db.tables import metadata, providers, search as search_table
from tests.catalog.exports import address, area, area_address, export, facility

NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)

AREAS = {
    "1": ("Yosemite National Park", "CA"),
    "2": ("Sequoia & Kings Canyon National Parks", "CA"),
    "3": ("Haleakal\u0101 National Park", "HI"),
    "4": ("Hensley Lake Recreation Area", ""),
    "5": ("Pines", "OR"),
}
CAMPGROUNDS = {
    "100": ("Upper Pines", "1", "CA"),
    "101": ("Lower Pines", "1", "CA"),
    "102": ("Canyon View Group Sites", "2", "CA"),
    "103": ("Hensley Lake", "4", ""),
    "104": ("O'Brien Ca\u00f1on", "", "NM"),
    "105": ("Site 100% Fun_House", "", ""),
    "106": ("Yosemite Creek", "1", "CA"),
    "107": ("Pines Campground", "5", "OR"),
    "108": ("Hosmer Grove", "3", "HI"),
}


def fill(database: Database) -> None:
    sync(
        database,
        export(
            [facility(key, name, ParentRecAreaID=place) for key, (name, place, _) in CAMPGROUNDS.items()],
            [address(key, state) for key, (_, _, state) in CAMPGROUNDS.items()],
            [area(key, name) for key, (name, _) in AREAS.items()],
            [area_address(key, state) for key, (_, state) in AREAS.items()],
        ),
        NOW,
    )


def names(database: Database, text: str) -> list[str]:
    return [found.name for found in search(database, text)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Upper Pines", "Upper Pines"),
        ("upper pines", "Upper Pines"),
        ("PINES UPPER", "Upper Pines"),
        ("up yosem", "Upper Pines"),
        ("upper pines california", "Upper Pines"),
        ("  upper,   pines (CA) ", "Upper Pines"),
        ("haleakala", "Haleakal\u0101 National Park"),
        ("HALEAKALA\u0304", "Haleakal\u0101 National Park"),
        ("hosmer hawaii", "Hosmer Grove"),
        ("obrien canon", "O'Brien Ca\u00f1on"),
        ("O\u2019Brien", "O'Brien Ca\u00f1on"),
        ("sequoia and kings", "Sequoia & Kings Canyon National Parks"),
        ("sequoia & kings", "Sequoia & Kings Canyon National Parks"),
        ("100% fun_house", "Site 100% Fun_House"),
    ],
)
def test_case_accents_signs_and_order_do_not_matter(database: Database, text: str, first: str) -> None:
    fill(database)
    assert names(database, text)[0] == first


@pytest.mark.parametrize(
    "text", ["", "   ", "%", "_", "%%%", "'", "|", "/", "\\", "\x00", "U_per", "Upp%nes", "pper", "upperpines"]
)
def test_nothing_is_found_for_nothing_and_wildcards_are_none(database: Database, text: str) -> None:
    fill(database)
    assert names(database, text) == []


def test_every_word_must_match(database: Database) -> None:
    fill(database)
    assert names(database, "upper yosemite oregon") == []
    assert names(database, "yosemite") == ["Yosemite National Park", "Yosemite Creek", "Lower Pines", "Upper Pines"]


def test_the_very_name_comes_first_then_names_that_begin_so(database: Database) -> None:
    fill(database)
    assert names(database, "pines") == ["Pines", "Pines Campground", "Lower Pines", "Upper Pines"]


@pytest.mark.parametrize(
    "text", ["canyon", "hensley lake", "lake hensley", "yosemite", "pines", "ca", "c", "n", "p california"]
)
def test_an_area_comes_before_its_campgrounds(database: Database, text: str) -> None:
    fill(database)
    found = [(hit.kind, hit.entity_id) for hit in search(database, text)]
    assert found
    for place, (kind, key) in enumerate(found):
        own_area = ("recreation_area", CAMPGROUNDS[key][1]) if kind == "campground" else None
        assert own_area not in found[place:]


def test_a_hit_says_what_and_where_it_is(database: Database) -> None:
    fill(database)
    assert search(database, "hensley") == [
        Found("recreation_gov", "recreation_area", "4", "Hensley Lake Recreation Area", None, None),
        Found("recreation_gov", "campground", "103", "Hensley Lake", "Hensley Lake Recreation Area", None),
    ]
    assert search(database, "hosmer") == [
        Found("recreation_gov", "campground", "108", "Hosmer Grove", "Haleakal\u0101 National Park", "HI")
    ]
    assert search(database, "brien") == []
    assert search(database, "obrien")[0].place is None


def test_a_limit_keeps_the_best(database: Database) -> None:
    fill(database)
    assert [found.name for found in search(database, "yosemite", limit=2)] == [
        "Yosemite National Park",
        "Yosemite Creek",
    ]


def test_a_long_text_is_no_trouble(database: Database) -> None:
    fill(database)
    assert names(database, "a b c d e f g " * 5000) == []
    assert names(database, "upper " * 5000) == ["Upper Pines"]


def test_rows_of_an_earlier_version_are_found(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(insert(providers), {"id": "recreation_gov", "name": "Recreation.gov"})
        row = {"provider": "recreation_gov", "kind": "campground", "entity_id": "1", "name": "Upper Pines"}
        connection.execute(insert(search_table), {**row, "terms": "upper pines yosemite national park"})
    assert names(database, "yosemite upper") == ["Upper Pines"]


# --- whatever people type --------------------------------------------------------------------------------------------

WORDS = sorted({word for name, *_ in [*AREAS.values(), *CAMPGROUNDS.values()] for word in name.split()})
ACCENTS = ["\u0301", "\u0304", "\u0308", "\u0327"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path: Path = tmp_path_factory.mktemp("search") / "filled.db"
    with closing(Database(f"sqlite:///{path}")) as database:
        metadata.create_all(database.engine)
        fill(database)
        yield database


@given(st.data())
def test_case_accents_and_order_never_change_what_is_found(filled: Database, data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from(WORDS).flatmap(beginnings), min_size=1, max_size=4))
    retyped = [data.draw(retyping(word)) for word in data.draw(st.permutations(words))]
    plain = {(hit.kind, hit.entity_id) for hit in search(filled, " ".join(words))}
    assert {(hit.kind, hit.entity_id) for hit in search(filled, " ".join(retyped))} == plain


def beginnings(word: str) -> st.SearchStrategy[str]:
    return st.integers(1, len(word)).map(lambda length: word[:length])


def retyping(word: str) -> st.SearchStrategy[str]:
    """The word in another case, with accents on its letters."""
    letters = [
        st.tuples(st.sampled_from([letter.lower(), letter.upper()]), st.sampled_from(["", *ACCENTS])).map("".join)
        if letter.isalpha()
        else st.just(letter)
        for letter in word
    ]
    return st.tuples(*letters).map("".join)


@given(st.text())
def test_any_text_is_searched_without_trouble(filled: Database, text: str) -> None:
    search(filled, text)


@given(st.text())
def test_normal_text_is_words_alone_and_stays_as_it_is(text: str) -> None:
    normal = normalise(text)
    assert all(word.isalnum() for word in normal.split())
    assert normal == " ".join(normal.split())
    assert normalise(normal) == normal
