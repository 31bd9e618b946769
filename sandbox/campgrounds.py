"""Invented campgrounds, and how they look in the shapes of Recreation.gov's private API (as observed 2023-2026)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Campsite:
    """One campsite; `equipment` maps a name to a greatest length in feet, `rules` is the month's `campsite_rules`."""

    id: str
    name: str = ""
    loop: str = ""
    type: str | None = "STANDARD NONELECTRIC"
    """MANAGEMENT sites are in the month and missing in the search, as on the real site."""
    type_of_use: str = "Overnight"
    reserve_type: str = "Site-Specific"
    min_people: int = 0
    max_people: int = 6
    capacity: str = "Single"
    accessible: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    equipment: Mapping[str, int] = field(default_factory=dict[str, int])
    hidden: bool = False
    rules: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Campground:
    """One campground; `rules` are its `facility_rules`; a night of which nothing is said has `default_status`."""

    id: str
    name: str
    sites: tuple[Campsite, ...] = ()
    time_zone: str = "America/Los_Angeles"
    latitude: float = 44.0
    longitude: float = -121.5
    parent_asset_id: str = ""
    deactivated: bool = False
    rules: JsonObject = field(default_factory=dict[str, Any])
    default_status: str = "Reserved"


Told = Mapping[tuple[str, date], str]
"""The status of (campsite id, night) where something was said about it."""


def month_body(campground: Campground, first: date, today: date, told: Told) -> JsonObject:
    """Give the month that starts on `first`, without its nights before `today`."""
    nights = [night for night in nights_of_month(first) if night >= today]
    campsites = {
        site.id: _month_record(site, {night: told.get((site.id, night), campground.default_status) for night in nights})
        for site in campground.sites
    }
    return {"campsites": campsites, "count": len(campsites)}


def search_body(records: list[JsonObject], start: int, size: int) -> JsonObject:
    """Give one page of campsite records; the key `campsites` is missing when the page has none."""
    page = records[start : start + size]
    counts = {"size": len(page), "spelling_autocorrected": False, "start": str(start), "total": len(records)}
    return {"campsites": page, **counts} if page else counts


def search_records(campground: Campground) -> list[JsonObject]:
    """Give the campsite records that the search knows: all but MANAGEMENT sites."""
    return [_search_record(campground, site) for site in campground.sites if site.type != "MANAGEMENT"]


def facility_body(campground: Campground) -> JsonObject:
    """Give the record of the campground itself."""
    return {
        "campground": {
            "facility_id": campground.id,
            "facility_name": campground.name,
            "facility_time_zone": campground.time_zone,
            "facility_latitude": campground.latitude,
            "facility_longitude": campground.longitude,
            "parent_asset_id": campground.parent_asset_id,
            "is_deactivated": campground.deactivated,
            "facility_rules": campground.rules,
        }
    }


def nights_of_month(first: date) -> list[date]:
    """Give every date of the month that starts on `first`."""
    days = [first + timedelta(days=day) for day in range(31)]
    return [day for day in days if day.month == first.month]


def night_key(night: date) -> str:
    """Give the key of a night: midnight "Z" in writing, a local calendar date in meaning."""
    return f"{night.isoformat()}T00:00:00Z"


def _month_record(site: Campsite, statuses: Mapping[date, str]) -> JsonObject:
    return {
        "availabilities": {night_key(night): status for night, status in statuses.items()},
        "campsite_id": site.id,
        "campsite_reserve_type": site.reserve_type,
        "campsite_rules": site.rules,
        "campsite_type": site.type,
        "capacity_rating": site.capacity,
        "hide_external": site.hidden,
        "loop": site.loop,
        "max_num_people": site.max_people,
        "min_num_people": site.min_people,
        # A trap of the real site: 1 means nothing, closed and unreleased nights have it too.
        "quantities": {night_key(night): int(status != "Reserved") for night, status in statuses.items()},
        "site": site.name,
        "supplemental_camping": None,
        "type_of_use": site.type_of_use,
    }


def _search_record(campground: Campground, site: Campsite) -> JsonObject:
    return {
        "accessible": "true" if site.accessible else "false",
        "asset_id": campground.id,
        "asset_name": campground.name,
        "asset_type": "Campground",
        "attributes": [
            {"attribute_category": "site_details", "attribute_id": 0, "attribute_name": name, "attribute_value": value}
            for name, value in site.attributes.items()
        ],
        "campsite_id": site.id,
        "campsite_reserve_type": site.reserve_type,
        "campsite_status": "Open",
        "fee_templates": {},
        "latitude": str(campground.latitude),
        "longitude": str(campground.longitude),
        "loop": site.loop,
        "name": site.name,
        "notices": [],
        "permitted_equipment": [
            {"equipment_name": name, "max_length": length} for name, length in site.equipment.items()
        ],
        "reservable": True,
        "type": site.type,
        "type_of_use": site.type_of_use,
    }
