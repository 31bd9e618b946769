from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import func, insert, select

from chalicelib.catalog.lookup import CampgroundNotFound, find, find_or_look_up
from chalicelib.catalog.metadata import remember_metadata
from chalicelib.catalog.search import search
from chalicelib.catalog.sync import sync
from chalicelib.db.engine import Database
from chalicelib.db.tables import campgrounds, campsites, provider_states, providers, recreation_areas
from chalicelib.errors import NotFound
from chalicelib.providers.contract import (
    CampgroundRecord,
    CampsiteMetadata,
    CheckError,
    MonthDocument,
    ProviderError,
    ProviderInfo,
)
from chalicelib.stays.campsites import Campsite, Equipment
from tests.catalog.exports import area, export, facility

NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ID = "recreation_gov"


class StandIn:
    """A booking site that knows what it is given. While it answers, no transaction may be open."""

    info = ProviderInfo(ID, "Recreation.gov", "https://x/{campground_id}", "https://x/{campsite_id}", concurrency=1)

    def __init__(self, database: Database, answer: CampgroundRecord | CheckError) -> None:
        self.database = database
        self.answer = answer
        self.asked: list[str] = []

    def campground(self, campground_id: str) -> CampgroundRecord:
        assert self.database.engine.pool.checkedout() == 0  # pyright: ignore[reportAttributeAccessIssue]
        self.asked.append(campground_id)
        if isinstance(self.answer, CheckError):
            raise ProviderError(self.answer)
        return self.answer

    def availability(self, campground_id: str, month: date) -> MonthDocument:
        raise NotImplementedError

    def campsites(self, campground_id: str) -> CampsiteMetadata:
        raise NotImplementedError


RECORD = CampgroundRecord("100", "UPPER PINES CAMPGROUND", "America/Los_Angeles", 37.7, -119.5, "1")
TROUBLE = sorted(set(CheckError) - {CheckError.NOT_FOUND})


def names(database: Database, text: str) -> list[str]:
    return [found.name for found in search(database, text)]


def count(database: Database) -> int:
    with database.reading() as connection:
        return connection.execute(select(func.count()).select_from(campgrounds)).scalar_one()


def test_what_the_catalogue_knows_needs_no_request(database: Database) -> None:
    sync(database, export([facility("100", ParentRecAreaID="1")], areas=[area("1")]), NOW)
    site = StandIn(database, RECORD)
    known = find_or_look_up(database, site, "100", LATER)
    assert site.asked == []
    assert (known.name, known.recreation_area, known.enabled, known.trouble) == (
        "Upper Pines",
        "Yosemite National Park",
        True,
        None,
    )


def test_what_it_lacks_is_asked_for_and_kept(database: Database) -> None:
    site = StandIn(database, RECORD)
    known = find_or_look_up(database, site, "100", NOW)
    assert known.name == "Upper Pines Campground"
    assert (known.time_zone, known.latitude, known.longitude) == ("America/Los_Angeles", 37.7, -119.5)
    assert (known.recreation_area_id, known.recreation_area) == ("1", None)
    assert (known.reservable, known.enabled, known.trouble) == (None, True, None)
    assert names(database, "upper pines") == ["Upper Pines Campground"]
    assert find_or_look_up(database, site, "100", LATER) == known == find(database, ID, "100")
    assert site.asked == ["100"]


def test_a_known_area_is_the_place_of_what_is_looked_up(database: Database) -> None:
    sync(database, export([facility("7", "Other")], areas=[area("1")]), NOW)
    known = find_or_look_up(database, StandIn(database, RECORD), "100", NOW)
    assert known.recreation_area == "Yosemite National Park"
    assert names(database, "yosemite pines") == ["Upper Pines Campground"]


def test_one_that_is_not_there_is_refused_and_nothing_is_kept(database: Database) -> None:
    with pytest.raises(CampgroundNotFound, match="there is no campground 404") as caught:
        find_or_look_up(database, StandIn(database, CheckError.NOT_FOUND), "404", NOW)
    assert isinstance(caught.value, NotFound)
    assert count(database) == 0


@pytest.mark.parametrize("campground_id", ["", " ", " 1", "1\x00", "1\n", "9" * 65])
def test_what_can_be_no_id_is_not_asked_for(database: Database, campground_id: str) -> None:
    site = StandIn(database, RECORD)
    with pytest.raises(CampgroundNotFound):
        find_or_look_up(database, site, campground_id, NOW)
    assert site.asked == []


@pytest.mark.parametrize("trouble", TROUBLE)
def test_after_any_other_trouble_the_name_comes_later(database: Database, trouble: CheckError) -> None:
    known = find_or_look_up(database, StandIn(database, trouble), "100", NOW)
    assert (known.name, known.enabled, known.trouble) == (None, True, trouble)

    again = find_or_look_up(database, StandIn(database, trouble), "100", NOW)
    assert again == known
    assert count(database) == 1

    known = find_or_look_up(database, StandIn(database, RECORD), "100", LATER)
    assert (known.name, known.trouble) == ("Upper Pines Campground", None)
    assert names(database, "upper pines") == ["Upper Pines Campground"]


def test_a_record_without_a_name_is_no_trouble(database: Database) -> None:
    known = find_or_look_up(database, StandIn(database, CampgroundRecord("100", " ")), "100", NOW)
    assert (known.name, known.trouble) == (None, None)


BREAKER = [
    ("closed", None, None, True),
    ("open", LATER, None, False),
    ("half open", NOW, None, True),
    ("half open, a probe under way", NOW, LATER, False),
    ("half open, a probe long ago", NOW, NOW, True),
]


@pytest.mark.parametrize(
    ("open_until", "probe_until", "asks"), [row[1:] for row in BREAKER], ids=[row[0] for row in BREAKER]
)
def test_a_provider_that_is_to_be_left_alone_is_not_asked(
    database: Database, open_until: datetime | None, probe_until: datetime | None, asks: bool
) -> None:
    with database.transaction() as connection:
        state = {"provider": ID, "open_until": open_until, "probe_until": probe_until}
        connection.execute(insert(provider_states), {**state, "error_category": "blocked"})
    site = StandIn(database, RECORD)
    known = find_or_look_up(database, site, "100", NOW)
    assert bool(site.asked) is asks
    assert known.trouble is (None if asks else CheckError.BLOCKED)
    assert known.name == ("Upper Pines Campground" if asks else None)


def test_one_that_has_left_the_catalogue_is_known_but_not_found_by_search(database: Database) -> None:
    sync(database, export([facility("100", ""), facility("7", "Other")]), NOW)
    sync(database, export([facility("7", "Other")]), NOW)
    known = find_or_look_up(database, StandIn(database, RECORD), "100", NOW)
    assert (known.name, known.enabled) == ("Upper Pines Campground", False)
    assert names(database, "upper") == []


# --- what a detection tells ------------------------------------------------------------------------------------------

SITES = {
    "1": Campsite("1", "044", "Loop A", "STANDARD ELECTRIC", frozenset({"tent", "rv"}), electric=True, max_people=6),
    "2": Campsite("2", "045", equipment=(Equipment("Tent", 20),)),
}


def kept(database: Database) -> dict[str, Campsite]:
    with database.reading() as connection:
        return {row.campsite_id: Campsite.from_json(row.campsite) for row in connection.execute(select(campsites))}


def remember(database: Database, metadata: CampsiteMetadata, now: datetime = NOW) -> None:
    with database.transaction() as connection:
        remember_metadata(connection, ID, "100", metadata, now)


def test_metadata_replaces_what_was_known(database: Database) -> None:
    find_or_look_up(database, StandIn(database, RECORD), "100", NOW)
    remember(database, CampsiteMetadata(SITES))
    assert kept(database) == SITES
    changed = {"2": Campsite("2", "046"), "3": Campsite("3")}
    remember(database, CampsiteMetadata(changed), LATER)
    assert kept(database) == changed
    with database.reading() as connection:
        assert connection.execute(select(campgrounds.c.campsites_fetched_at)).scalar_one() == LATER


def test_metadata_without_campsites_unlearns_nothing(database: Database) -> None:
    find_or_look_up(database, StandIn(database, RECORD), "100", NOW)
    remember(database, CampsiteMetadata(SITES))
    remember(database, CampsiteMetadata({}), LATER)
    assert kept(database) == SITES


def test_metadata_tells_a_missing_name(database: Database) -> None:
    find_or_look_up(database, StandIn(database, CheckError.TIMEOUT), "100", NOW)
    remember(database, CampsiteMetadata(SITES, None))
    assert names(database, "upper") == []
    remember(database, CampsiteMetadata(SITES, "UPPER PINES"))
    known = find(database, ID, "100")
    assert known
    assert known.name == "Upper Pines"
    assert names(database, "upper") == ["Upper Pines"]


def test_metadata_changes_no_name(database: Database) -> None:
    find_or_look_up(database, StandIn(database, RECORD), "100", NOW)
    remember(database, CampsiteMetadata(SITES, "Something Else"))
    assert names(database, "upper") == ["Upper Pines Campground"]
    assert names(database, "something") == []


def test_metadata_belongs_to_its_campground(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(insert(providers), {"id": ID, "name": "Recreation.gov"})
        for key in ("100", "200"):
            connection.execute(insert(campgrounds), {"provider": ID, "campground_id": key, "updated_at": NOW})
        remember_metadata(connection, ID, "200", CampsiteMetadata({"9": Campsite("9")}), NOW)
    remember(database, CampsiteMetadata(SITES))
    assert set(kept(database)) == {"1", "2", "9"}


def test_a_late_name_is_found_by_its_area_too(database: Database) -> None:
    find_or_look_up(database, StandIn(database, CheckError.TIMEOUT), "100", NOW)
    with database.transaction() as connection:
        connection.execute(
            insert(recreation_areas),
            {"provider": ID, "recreation_area_id": "1", "name": "Yosemite", "state": "CA", "updated_at": NOW},
        )
        connection.execute(campgrounds.update().values(recreation_area_id="1"))
    remember(database, CampsiteMetadata({}, "Upper Pines"))
    assert names(database, "california yosemite pines") == ["Upper Pines"]
