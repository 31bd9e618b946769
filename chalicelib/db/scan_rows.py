"""Rows of scans and of results, and the thoughts they stand for: the one place that knows both forms."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from typing import Any

from sqlalchemy import RowMapping

from chalicelib.history import iso
from chalicelib.stays.campsites import Campsite
from chalicelib.stays.filters import Filters
from chalicelib.stays.openings import Result

Columns = Mapping[str, Any] | RowMapping
"""A row by its columns' names; it may hold more than is read here."""


FILTER_COLUMNS = tuple(field.name for field in fields(Filters))
"""The columns of user_scans that `filters_of` reads: they bear the filters' own names."""


def filters_of(row: Columns) -> Filters:
    """What a row of user_scans wants."""
    return Filters(
        min_stay_length=row["min_stay_length"],
        preferred_types=frozenset(row["preferred_types"]),
        require_electric=row["require_electric"],
        require_accessible=row["require_accessible"],
        people=row["people"],
        equipment=row["equipment"],
        equipment_length=row["equipment_length"],
        loops_wanted=frozenset(row["loops_wanted"]),
        loops_unwanted=frozenset(row["loops_unwanted"]),
        campsites_wanted=frozenset(row["campsites_wanted"]),
        campsites_unwanted=frozenset(row["campsites_unwanted"]),
        arrival_weekdays=frozenset(row["arrival_weekdays"]),
    )


def filter_columns(filters: Filters) -> dict[str, Any]:
    """The way back from `filters_of`: the columns of user_scans, lists in order."""
    return {
        "min_stay_length": filters.min_stay_length,
        "preferred_types": sorted(filters.preferred_types),
        "require_electric": filters.require_electric,
        "require_accessible": filters.require_accessible,
        "people": filters.people,
        "equipment": filters.equipment,
        "equipment_length": filters.equipment_length,
        "loops_wanted": sorted(filters.loops_wanted),
        "loops_unwanted": sorted(filters.loops_unwanted),
        "campsites_wanted": sorted(filters.campsites_wanted),
        "campsites_unwanted": sorted(filters.campsites_unwanted),
        "arrival_weekdays": sorted(filters.arrival_weekdays),
    }


def result_of(row: Columns) -> Result:
    """What a row of scan_results says."""
    return Result(Campsite.from_json(row["campsite"]), moments_of(row["nights"]), moments_of(row["unknown_since"]))


def result_columns(result: Result) -> dict[str, Any]:
    """The way back from `result_of`: the columns of scan_results but for target_id."""
    return {
        "campsite_id": result.campsite.id,
        "campsite": result.campsite.to_json(),
        "nights": _dated(result.nights),
        "unknown_since": _dated(result.unknown_since),
    }


def moments_of(stored: Mapping[str, str]) -> dict[date, datetime]:
    """Moments by day, from the form in which results keep them."""
    return {date.fromisoformat(day): datetime.fromisoformat(moment) for day, moment in stored.items()}


def _dated(moments: Mapping[date, datetime]) -> dict[str, str]:
    return {day.isoformat(): iso(moments[day]) for day in sorted(moments)}
