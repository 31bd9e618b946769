"""Recreation.gov: months of availability, campsite metadata and campground records, from its private JSON API."""

import logging
import re
from collections import Counter
from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, Final, TypeVar, cast
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chalicelib.history import Clock, utc_now
from chalicelib.providers.contract import (
    CampgroundRecord,
    CampsiteMetadata,
    CheckError,
    MonthDocument,
    ProviderError,
    ProviderInfo,
)
from chalicelib.providers.fetch import get, not_json
from chalicelib.stays.campsites import Campsite, Equipment, electric_by_type, types_of
from chalicelib.stays.names import plain_text, tidy_name
from chalicelib.stays.nights import ONE_DAY, first_of_month
from chalicelib.stays.openings import MonthAnswer, SiteMonth

AVAILABLE: Final = "Available"
"""The one status that opens a night."""

LONGEST_ID = 128

LEFT_FIRST: Final = Field(union_mode="left_to_right")
Model = TypeVar("Model", bound=BaseModel)
OrAnything = Annotated[Model | Any, LEFT_FIRST]
"""A record, or whatever stands in its place as it is: one odd record must not lose the others."""

log = logging.getLogger(__name__)


class RecreationGovConfig(BaseModel):
    """`user_agent` names the instance honestly; `deadline_seconds` is the time that one request may take in all."""

    model_config = ConfigDict(frozen=True)

    base_url: str = "https://www.recreation.gov"
    user_agent: str
    deadline_seconds: Annotated[float, Field(gt=0)] = 20


RECREATION_GOV = ProviderInfo(
    id="recreation_gov",
    name="Recreation.gov",
    campground_link="https://www.recreation.gov/camping/campgrounds/{campground_id}",
    campsite_link="https://www.recreation.gov/camping/campsites/{campsite_id}",
    concurrency=2,
)


class RecreationGov:
    """The adapter; `info` may name a site that speaks the same API.

    Campgrounds and campsites are known by opaque strings, mostly digits.
    """

    def __init__(
        self,
        client: httpx.Client,
        config: RecreationGovConfig,
        clock: Clock = utc_now,
        info: ProviderInfo = RECREATION_GOV,
    ) -> None:
        self.info = info
        self._client = client
        self._config = config
        self._clock = clock
        self._told: set[str] = set()

    def availability(self, campground_id: str, month: date) -> MonthDocument:
        """Open nights of every campsite in the month that begins on `month`. One request."""
        path = f"/api/camps/availability/campground/{_in_path(campground_id)}/month"
        # httpx encodes the colons of a parameter; raw ones are refused ("query not encoded").
        body = self._get(path, {"start_date": f"{first_of_month(month).isoformat()}T00:00:00.000Z"})

        def read() -> MonthAnswer:
            answer, strangers = read_month(body, first_of_month(month))
            self._tell(strangers)
            return answer

        return MonthDocument(sha256(body).hexdigest(), read)

    def campsites(self, campground_id: str) -> CampsiteMetadata:
        """Metadata of the campground's campsites, on one page: the largest campground has 360. One request."""
        _in_path(campground_id)
        params = {
            "start": "0",
            "size": "1000",
            "fq": f"asset_id:{campground_id}",
            "include_non_site_specific_campsites": "True",
        }
        return read_campsites(self._get("/api/search/campsites", params))

    def campground(self, campground_id: str) -> CampgroundRecord:
        """The campground's own record; raises ProviderError with `not_found` where there is none. One request."""
        return read_campground(self._get(f"/api/camps/campgrounds/{_in_path(campground_id)}"), campground_id)

    def _get(self, path: str, params: dict[str, str] | None = None) -> bytes:
        return get(
            self._client,
            self._config.base_url + path,
            params=params,
            headers={"User-Agent": self._config.user_agent, "Accept": "application/json"},
            seconds=self._config.deadline_seconds,
            clock=self._clock,
        )

    def _tell(self, strangers: Iterable[str]) -> None:
        """Log each status that nobody knows once, so that an operator may judge it."""
        for status in strangers:
            if status not in self._told and len(self._told) < 50:
                self._told.add(status)
                log.warning("Recreation.gov used an unknown status, taken as not available: %s", status)


# --- a month of availability ------------------------------------------------------------------------------


class Odd(StrEnum):
    """What was not understood in an answer, or is counted for an operator to judge again."""

    OPEN = "status_open"  # beyond the release window: may end a stay, never begin one
    CHECKOUT = "status_checkout"  # a newer name of the same, reported and not recorded
    UNKNOWN_STATUS = "status_unknown"
    NULL_STATUS = "status_null"  # null, or no string
    NIGHT_KEY = "night_key"  # no date
    OTHER_MONTH = "other_month"  # a night outside the month that was asked for
    NULL_NIGHTS = "nights_null"  # null, or no object
    NULL_RECORD = "record_null"  # null, or no object
    SITE_ID = "site_id"  # empty, too long, unprintable, no string
    SITE_FIELD = "site_field"  # a field that is null or of another type


class MinStay(BaseModel):
    """A minimum stay and its season. `secondary_value` is "strict", or "soft" (two of six in 2023)."""

    value: Any = None
    units: Any = None
    secondary_value: Any = None
    start_date: Any = None
    end_date: Any = None


class MonthRules(BaseModel):
    """What a site's rules say of stays."""

    minConsecutiveStay: OrAnything[MinStay] = None  # noqa: N815  # the site's own word


class MonthSite(BaseModel):
    """One campsite of a month, as recorded 45 times in 2023 and observed until October 2026.

    Every field may be null or missing, so none has a type here. `quantities` is not among them on purpose: it is 1 on
    closed and unreleased nights too. `loop` may have trailing blanks. `hide_external` came after 2023. The site's id is
    the key of the map; `campsite_id` repeats it, as a number in old answers.

    Of `campsite_rules`, null or empty for most, only `minConsecutiveStay` is read: `value` nights, from `start_date`
    to `end_date` (the year 1 stands for none). Six sites of 2023 have one, two of them out of season.
    """

    site: Any = None
    loop: Any = None
    campsite_type: Any = None
    type_of_use: Any = None
    min_num_people: Any = None
    max_num_people: Any = None
    hide_external: Any = None
    campsite_rules: Annotated[MonthRules | Any, LEFT_FIRST] = None
    availabilities: Any = None


class Month(BaseModel):
    """A month's answer: 340 bytes to 630 KB. `campsites` is missing, null or empty where nothing is loaded.

    The keys of `availabilities` are midnight "Z" and mean local calendar dates: their first ten characters. Nights that
    have passed may be missing. MANAGEMENT sites are in here and not in the metadata.
    """

    campsites: dict[str, OrAnything[MonthSite]] | None = None


NOT_ODD: Final = frozenset(
    {
        AVAILABLE,
        "Reserved",
        "NYR",
        "Closed",
        "Not Reservable",
        "Not Reservable Management",
        "Not Available",
        "Not Available Cutoff",
        "Lottery",
        "Walk-up",
    }
)
"""Known words (2023; Cutoff: 2026; Lottery, Walk-up: hearsay). All but the first are nights that nobody can book."""

_COUNTED: Final = {"Open": Odd.OPEN, "Checkout": Odd.CHECKOUT}


def read_month(body: bytes, month: date) -> tuple[MonthAnswer, list[str]]:
    """Understand a month's answer; also give the statuses that nobody knows, short and printable.

    Raises ProviderError for what is no JSON or has another shape as a whole.
    """
    reading = _MonthReading(month)
    for campsite_id, record in (_parsed(Month, body).campsites or {}).items():
        reading.add(campsite_id, record)
    return reading.answer(), sorted(reading.strangers)


# A campground has few types for its hundreds of sites.
_types = lru_cache(maxsize=256)(types_of)


class _MonthReading:
    """What one answer has told so far."""

    def __init__(self, month: date) -> None:
        self._month = month
        days = (month + ONE_DAY * day for day in range(31))
        self._usual_nights = {_night_key(night): night for night in days if night.month == month.month}
        self._sites: dict[str, SiteMonth] = {}
        self._says_something = False
        self._odd = Counter[str]()
        self.strangers: set[str] = set()

    def answer(self) -> MonthAnswer:
        oddities = {word.value: self._odd[word] for word in Odd if self._odd[word.value]}
        return MonthAnswer(self._month, self._sites, blank=not self._says_something, oddities=oddities)

    def add(self, key: str, record: object) -> None:
        campsite_id = _id(key)
        if campsite_id is None:
            self._odd[Odd.SITE_ID.value] += 1
        if not isinstance(record, MonthSite):
            self._odd[Odd.NULL_RECORD.value] += 1
            if campsite_id is not None:
                # Unknown, and not gone: a site that is left out counts as booked.
                self._sites[campsite_id] = SiteMonth(Campsite(campsite_id, name=campsite_id), None)
            return
        nights = self._nights(record.availabilities)
        # Sites that nobody can watch speak for the answer all the same.
        self._says_something = self._says_something or nights is not None
        if campsite_id is not None and self._is_offered(record):
            self._sites[campsite_id] = SiteMonth(self._campsite(campsite_id, record), nights)

    def _nights(self, availabilities: object) -> frozenset[date] | None:
        """Open nights; None where nothing is said of any night of this month."""
        if not isinstance(availabilities, dict):
            self._odd[Odd.NULL_NIGHTS.value] += 1
            return None
        by_night, usual = cast("dict[str, Any]", availabilities), self._usual_nights
        # A large campground has seven thousand nights, nearly all of them usual: those are not looked at one by one.
        if not by_night.keys() <= usual.keys():
            by_night = self._of_this_month(by_night)
        try:
            kinds = set(by_night.values())
        except TypeError:  # a list or an object in the place of a status
            by_night = {key: status if isinstance(status, str) else None for key, status in by_night.items()}
            kinds = set(by_night.values())
        for status in kinds - NOT_ODD:
            self._count_status(status, [*by_night.values()].count(status))
        if AVAILABLE in kinds:
            return frozenset([usual[key] for key, status in by_night.items() if status == AVAILABLE])
        return frozenset() if any(isinstance(status, str) for status in kinds) else None

    def _of_this_month(self, by_night: dict[str, Any]) -> dict[str, Any]:
        """Keep the nights of this month, under the usual form of their keys."""
        kept: dict[str, Any] = {}
        for key, status in by_night.items():
            night = _date(key[:10])
            if night is None:
                self._odd[Odd.NIGHT_KEY.value] += 1
            elif first_of_month(night) != self._month:
                self._odd[Odd.OTHER_MONTH.value] += 1
            else:
                kept[_night_key(night)] = status
        return kept

    def _count_status(self, status: object, count: int) -> None:
        if not isinstance(status, str):
            self._odd[Odd.NULL_STATUS.value] += count
            return
        odd = _COUNTED.get(status, Odd.UNKNOWN_STATUS)
        self._odd[odd.value] += count
        if odd is Odd.UNKNOWN_STATUS and len(self.strangers) < 20:
            self.strangers.add(_for_log(status))

    def _is_offered(self, record: MonthSite) -> bool:
        return record.hide_external not in (True, "true") and _is_for_the_night(
            record.campsite_type, record.type_of_use
        )

    def _campsite(self, campsite_id: str, record: MonthSite) -> Campsite:
        for field in (record.site, record.loop, record.campsite_type):
            if not isinstance(field, str):
                self._odd[Odd.SITE_FIELD.value] += 1
        provider_type = _text(record.campsite_type)
        min_people, max_people = _people(record.min_num_people, record.max_num_people)
        return Campsite(
            campsite_id,
            name=_text(record.site) or campsite_id,
            loop=_text(record.loop),
            provider_type=provider_type,
            types=_types(provider_type),
            electric=electric_by_type(provider_type),
            min_people=min_people,
            max_people=max_people,
            min_stay=_min_stay(record.campsite_rules, self._month),
        )


def _min_stay(rules: object, month: date) -> int | None:
    """The site's own minimum stay, where its season touches the month.

    A soft one binds nobody for sure: to say of an open night that it cannot be booked would cost somebody a stay.
    """
    rule = rules.minConsecutiveStay if isinstance(rules, MonthRules) else None
    if not isinstance(rule, MinStay) or rule.secondary_value == "soft" or not _counts_nights(rule.units):
        return None
    begin, end = _season_day(rule.start_date), _season_day(rule.end_date)
    if (end is not None and end < month) or (begin is not None and first_of_month(begin) > month):
        return None
    nights = _number(rule.value)
    return nights if nights is not None and 1 < nights < 366 else None


def _counts_nights(units: object) -> bool:
    return not isinstance(units, str) or not units or "night" in units.casefold()


def _season_day(value: object) -> date | None:
    day = _date(value[:10]) if isinstance(value, str) else None
    return None if day is None or day.year == 1 else day


# --- metadata of campsites --------------------------------------------------------------------------------

HOOKUP, LEAST_PEOPLE, MOST_PEOPLE = WANTED = ("Electricity Hookup", "Min Num of People", "Max Num of People")


class FoundAttribute(BaseModel):
    """A free attribute: `Electricity Hookup` is "50", "30 amp", "N/A" or "" (2023); numbers of people are strings."""

    attribute_name: Any = None
    attribute_value: Any = None


class FoundEquipment(BaseModel):
    """Permitted equipment; a `max_length` of 0 sets no limit."""

    equipment_name: Any = None
    max_length: Any = None


class FoundSite(BaseModel):
    """One campsite as the search tells it (13 campgrounds recorded in April 2023): `accessible` is a string."""

    campsite_id: Any = None
    asset_name: Any = None
    name: Any = None
    loop: Any = None
    type: Any = None
    type_of_use: Any = None
    accessible: Any = None
    attributes: Annotated[list[OrAnything[FoundAttribute]] | Any, LEFT_FIRST] = None
    permitted_equipment: Annotated[list[OrAnything[FoundEquipment]] | Any, LEFT_FIRST] = None


class Found(BaseModel):
    """The search's answer. `campsites` is missing when there are none; MANAGEMENT sites never are in it."""

    campsites: list[OrAnything[FoundSite]] | None = None


def read_campsites(body: bytes) -> CampsiteMetadata:
    """Understand the metadata of a campground's campsites.

    Raises ProviderError for what is no JSON or has another shape as a whole.
    """
    campsites: dict[str, Campsite] = {}
    campground_name: str | None = None
    odd = Counter[str]()
    for record in _parsed(Found, body).campsites or []:
        if not isinstance(record, FoundSite):
            odd[Odd.NULL_RECORD.value] += 1
            continue
        campground_name = campground_name or tidy_name(_text(record.asset_name) or "") or None
        campsite_id = _id(record.campsite_id)
        if campsite_id is None:
            odd[Odd.SITE_ID.value] += 1
        elif _is_for_the_night(record.type, record.type_of_use):
            campsites[campsite_id] = _found_campsite(campsite_id, record)
    return CampsiteMetadata(campsites, campground_name, dict(odd))


def _found_campsite(campsite_id: str, record: FoundSite) -> Campsite:
    attributes = {
        attribute.attribute_name: attribute.attribute_value
        for attribute in _all_of(FoundAttribute, record.attributes)
        if attribute.attribute_name in WANTED
    }
    provider_type = _text(record.type)
    min_people, max_people = _people(attributes.get(LEAST_PEOPLE), attributes.get(MOST_PEOPLE))
    return Campsite(
        campsite_id,
        name=_text(record.name) or campsite_id,
        loop=_text(record.loop),
        provider_type=provider_type,
        types=types_of(provider_type),
        electric=_electric(attributes[HOOKUP]) if HOOKUP in attributes else None,
        accessible=_accessible(record.accessible),
        min_people=min_people,
        max_people=max_people,
        equipment=tuple(_equipment(record.permitted_equipment)),
    )


def _electric(hookup: object) -> bool | None:
    """Read a hookup: an amount or yes is one; nothing, no and `N/A` are none; other words leave it to the type."""
    if isinstance(hookup, bool | int):
        return bool(hookup)
    word = hookup.strip().casefold() if isinstance(hookup, str) else ""
    if re.search(r"[1-9]", word) or word in {"yes", "y", "true"}:
        return True
    return False if not re.search(r"\w", word) or word in {"n/a", "na", "no", "n", "none", "false", "0"} else None


def _accessible(value: object) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().casefold())
    return value if isinstance(value, bool) else None


def _equipment(listed: object) -> Iterable[Equipment]:
    for item in _all_of(FoundEquipment, listed):
        name = _text(item.equipment_name)
        if name:
            yield Equipment(name, _number(item.max_length) or None)


# --- a campground's record --------------------------------------------------------------------------------


class Facility(BaseModel):
    """A campground (field names from others' notes of 2026; nobody recorded an answer)."""

    facility_name: Any = None
    facility_time_zone: Any = None
    facility_latitude: Any = None
    facility_longitude: Any = None
    parent_asset_id: Any = None


class FacilityAnswer(BaseModel):
    """The answer around it. An unknown id may come as 404 or without a campground."""

    campground: Facility | None = None


def read_campground(body: bytes, campground_id: str) -> CampgroundRecord:
    """Understand a campground's record.

    Raises ProviderError, with `not_found` where there is no campground or none with a name.
    """
    facility = _parsed(FacilityAnswer, body).campground
    name = tidy_name(_text(facility.facility_name) or "") if facility else ""
    if facility is None or not name:
        raise ProviderError(CheckError.NOT_FOUND, status=200)
    time_zone = _text(facility.facility_time_zone) or ""
    latitude, longitude = _degrees(facility.facility_latitude, 90), _degrees(facility.facility_longitude, 180)
    # 0, 0 lies in the sea and stands for "nobody entered it".
    is_placed = latitude is not None and longitude is not None and (latitude, longitude) != (0.0, 0.0)
    return CampgroundRecord(
        campground_id,
        name,
        time_zone=time_zone if re.fullmatch(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+)+|UTC", time_zone) else None,
        latitude=latitude if is_placed else None,
        longitude=longitude if is_placed else None,
        recreation_area_id=_id(facility.parent_asset_id),
    )


# --- fields that may be anything --------------------------------------------------------------------------


_SURROGATES: Final = re.compile(rb"(\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..")
"""Escapes of a pair of surrogates, which are a character, or of a lone one, which is none."""


def _parsed(model: type[Model], body: bytes) -> Model:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        whole = _SURROGATES.sub(lambda found: found[1] or rb"\ufffd", body)
        if whole != body:  # half a character in one name must not lose the other sites
            return _parsed(model, whole)
        is_json = all(item["type"] != "json_invalid" for item in error.errors(include_url=False, include_input=False))
        raise (ProviderError(CheckError.MALFORMED, status=200) if is_json else not_json(body)) from None


def _in_path(campground_id: str) -> str:
    """Quote an id for a path. What cannot be one ("..", which would name another path) is not found, without asking."""
    if _id(campground_id) is None or not campground_id.strip("."):
        raise ProviderError(CheckError.NOT_FOUND)
    return quote(campground_id, safe="")


def _id(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**LONGEST_ID:
        value = str(value)
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable() else None


def _text(value: object) -> str | None:
    return plain_text(value) or None if isinstance(value, str) else None


def _number(value: object) -> int | None:
    """Read a whole number from 0 to 99,999, from a string too; None for anything else."""
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"\d{1,5}", value.strip(), re.ASCII) else None
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 100_000 else None


def _people(least: object, most: object) -> tuple[int | None, int | None]:
    """Read least and greatest number of people; a greatest of 0 says nothing."""
    return _number(least), _number(most) or None


def _degrees(value: object, limit: int) -> float | None:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and -limit <= number <= limit else None


def _date(text: str) -> date | None:
    try:
        # The pattern, because fromisoformat also reads week dates.
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else None
    except ValueError:
        return None


def _night_key(night: date) -> str:
    return f"{night.isoformat()}T00:00:00Z"


def _is_for_the_night(provider_type: object, type_of_use: object) -> bool:
    """Tell sites to sleep on from day-use ones and from those kept for staff."""
    kept = (_text(provider_type) or "").upper() == "MANAGEMENT"
    return not kept and (_text(type_of_use) or "").casefold() != "day"


def _all_of(model: type[Model], listed: object) -> Iterable[Model]:
    return (
        [item for item in cast("list[object]", listed) if isinstance(item, model)] if isinstance(listed, list) else []
    )


def _for_log(status: str) -> str:
    return "".join(char if " " <= char <= "~" else "?" for char in status[:40])
