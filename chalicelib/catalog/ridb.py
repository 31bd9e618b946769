"""Reads the RIDB full export: the campgrounds and recreation areas in it, streamed from the zip member by member.

What was learned about it (2023 and 2026): members are called `<Name>_API_v1.json` or `.csv` and hold the same columns.
About 5 % of campgrounds name no recreation area or one that is not there, many addresses are missing, a state can be a
full name, unknown coordinates are 0,0, most ids are numbers but not all.
"""

import codecs
import csv
import io
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, cast

from chalicelib.catalog.states import state_code
from chalicelib.errors import Refused
from chalicelib.stays.names import plain_text, tidy_name

Progress = Callable[[int, int], None]
"""Is told what is done, and of how much."""

LONGEST_ID = 64
LONGEST_STATE = 64
PROGRESS_EVERY = 200  # records
LONGEST_FIELD = 64 * 1024 * 1024  # characters of one CSV field; descriptions outgrow the csv module's 128 KiB


class ExportProblem(StrEnum):
    """Why an export is of no use: the whole list."""

    UNREADABLE = "unreadable"  # there is no such file, or it cannot be read
    NOT_A_ZIP = "not_a_zip"  # or one cut short: a zip's directory is at its end
    DAMAGED = "damaged"
    NO_FACILITIES = "no_facilities"
    NO_CAMPGROUNDS = "no_campgrounds"  # surely not what the country looks like
    DOWNLOAD_FAILED = "download_failed"


class ExportError(Refused):
    """The export cannot be used, and nothing was changed. The text is a sentence for people."""

    def __init__(self, problem: ExportProblem, sentence: str) -> None:
        super().__init__(sentence)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class RecreationArea:
    """One recreation area of the export."""

    id: str
    name: str
    state: str | None
    latitude: float | None
    longitude: float | None


@dataclass(frozen=True, slots=True)
class Campground:
    """One campground of the export. Its recreation area may be one that the export does not hold."""

    id: str
    name: str | None
    recreation_area_id: str | None
    state: str | None
    latitude: float | None
    longitude: float | None
    reservable: bool | None


@dataclass(frozen=True, slots=True)
class Export:
    """What the catalogue takes from an export, by id. `oddities` counts records left out, by a short fixed word."""

    recreation_areas: Mapping[str, RecreationArea]
    campgrounds: Mapping[str, Campground]
    oddities: Mapping[str, int]


def read(source: Path | IO[bytes], progress: Progress | None = None) -> Export:
    """Read the campgrounds of an export, a record at a time: only what is kept of them is ever in memory.

    1. Facilities: the enabled campgrounds.
    2. Their addresses, for the states.
    3. Recreation areas and their addresses.
    4. A campground without a state of its own gets its recreation area's.

    Raises ExportError.
    """
    with _opened(source) as archive:
        members = _Members(archive, progress or _unseen)
        campgrounds = _campgrounds(members)
        if not campgrounds:
            raise ExportError(ExportProblem.NO_CAMPGROUNDS, "this export holds no campgrounds")
        states = _states(members, "FacilityAddresses", "Facility", campgrounds)
        areas = _recreation_areas(members)
        area_states = _states(members, "RecAreaAddresses", "RecArea", areas)
    return Export(
        {area.id: replace(area, state=area_states.get(area.id)) for area in areas.values()},
        {
            campground.id: replace(
                campground, state=states.get(campground.id) or area_states.get(campground.recreation_area_id or "")
            )
            for campground in campgrounds.values()
        },
        dict(members.oddities),
    )


def _opened(source: Path | IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except (zipfile.BadZipFile, ValueError) as error:
        raise ExportError(ExportProblem.NOT_A_ZIP, "this is not a zip file, or only a part of one") from error
    except OSError as error:
        raise ExportError(ExportProblem.UNREADABLE, "the export cannot be read: is there such a file?") from error


def _campgrounds(members: "_Members") -> dict[str, Campground]:
    found: dict[str, Campground] = {}
    for record in members.records("Facilities"):
        if _text(record, "FacilityTypeDescription") != "Campground":
            continue
        enabled = _flag(record, "Enabled")
        if enabled is False:
            continue
        campground_id = _id(record, "FacilityID")
        if campground_id is None or enabled is None:
            members.oddities["campground_without_id_or_flag"] += 1
        elif campground_id in found:
            members.oddities["campground_twice"] += 1
        else:
            found[campground_id] = Campground(
                campground_id,
                _name(record, "FacilityName"),
                _id(record, "ParentRecAreaID"),
                None,
                *_coordinates(record, "Facility"),
                _flag(record, "Reservable"),
            )
    return found


def _recreation_areas(members: "_Members") -> dict[str, RecreationArea]:
    found: dict[str, RecreationArea] = {}
    for record in members.records("RecAreas"):
        area_id, name = _id(record, "RecAreaID"), _name(record, "RecAreaName")
        if area_id is None or name is None:
            members.oddities["recreation_area_without_id_or_name"] += 1
        elif area_id in found:
            members.oddities["recreation_area_twice"] += 1
        else:
            found[area_id] = RecreationArea(area_id, name, None, *_coordinates(record, "RecArea"))
    return found


_ADDRESSES = ("physical", "default", "", "mailing")
"""Kinds of addresses, the most telling first: mail may go to a headquarters in another state."""


def _states(members: "_Members", member: str, prefix: str, wanted: Container[str]) -> dict[str, str]:
    """The state of each wanted entity that has an address with one."""
    found: dict[str, tuple[int, str]] = {}
    for record in members.records(member):
        entity_id = _id(record, f"{prefix}ID")
        state = state_code(_text(record, "AddressStateCode"))
        if entity_id is None or entity_id not in wanted or state is None:
            continue
        kind = _text(record, f"{prefix}AddressType").casefold()
        place = _ADDRESSES.index(kind if kind in _ADDRESSES else "")
        if entity_id not in found or place < found[entity_id][0]:
            found[entity_id] = (place, state[:LONGEST_STATE])
    return {entity_id: state for entity_id, (_, state) in found.items()}


class _Members:
    """The members of one export that the catalogue needs, in either format."""

    NEEDED = ("Facilities", "FacilityAddresses", "RecAreas", "RecAreaAddresses")

    def __init__(self, archive: zipfile.ZipFile, progress: Progress) -> None:
        self.oddities: Counter[str] = Counter()
        self._archive = archive
        self._progress = progress
        names = {info.filename.rpartition("/")[2].casefold(): info for info in archive.infolist()}
        self._members = {
            name: info
            for name in self.NEEDED
            for info in [names.get(f"{name}_API_v1.{ending}".casefold()) for ending in ("csv", "json")]
            if info is not None
        }
        if "Facilities" not in self._members:
            raise ExportError(ExportProblem.NO_FACILITIES, "this zip holds no Facilities: it is not a RIDB full export")
        self._total = sum(info.file_size for info in self._members.values())
        self._done = 0

    def records(self, name: str) -> Iterator[dict[str, Any]]:
        """Each record of a member. What is no record is counted and left out; a member that is not there has none."""
        info = self._members.get(name)
        if info is None:
            self.oddities["member_missing"] += 1
            return
        read_records = _csv_records if info.filename.casefold().endswith("csv") else _json_records
        try:
            with self._archive.open(info) as binary:
                for count, record in enumerate(read_records(binary)):
                    if count % PROGRESS_EVERY == 0:
                        self._progress(self._done + min(binary.tell(), info.file_size), self._total)
                    if record is None:
                        self.oddities["unreadable_record"] += 1
                    else:
                        yield record
        except _CANNOT_UNPACK as error:
            raise ExportError(ExportProblem.DAMAGED, f"the export is damaged: {name} cannot be read") from error
        self._done += info.file_size
        self._progress(self._done, self._total)


class _Malformed(Exception):
    """A member is neither CSV nor JSON."""


_CANNOT_UNPACK = (_Malformed, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
"""What zipfile raises for a cut, altered or encrypted member, or one packed in a way it does not know."""


def _csv_records(binary: IO[bytes]) -> Iterator[dict[str, Any] | None]:
    csv.field_size_limit(LONGEST_FIELD)  # the module knows no limit of a single reader
    rows = csv.reader(io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline=""))
    try:
        header = next(rows, list[str]())
        for row in rows:
            if row:
                yield dict(zip(header, row, strict=True)) if len(row) == len(header) else None
    except csv.Error as error:
        raise _Malformed from error


def _json_records(binary: IO[bytes]) -> Iterator[dict[str, Any] | None]:
    try:
        import ijson
    except ModuleNotFoundError as error:  # the deployed package has none, and takes the CSV export
        raise ExportError(ExportProblem.UNREADABLE, "the JSON export needs ijson here: take the CSV export") from error
    records = cast("Iterator[object]", ijson.items(_CleanUtf8(binary), "RECDATA.item", use_float=True))
    try:
        for record in records:
            yield cast("dict[str, Any]", record) if isinstance(record, dict) else None
    except ijson.JSONError as error:
        raise _Malformed from error


class _CleanUtf8:
    """Bytes as ijson wants them: without a byte order mark, and with no byte that is not UTF-8."""

    def __init__(self, binary: IO[bytes]) -> None:
        self._binary = binary
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")

    def read(self, size: int) -> bytes:
        while size:
            data = self._binary.read(size)
            text = self._decoder.decode(data, final=not data)
            if text or not data:
                return text.encode()
        return b""


def _text(record: Mapping[str, Any], field: str) -> str:
    """A field as storable text; numbers are taken as their digits, anything else as blank."""
    value = record.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return plain_text(value) if isinstance(value, str) else ""


def _id(record: Mapping[str, Any], field: str) -> str | None:
    value = _text(record, field)
    return value if 0 < len(value) <= LONGEST_ID else None


def _name(record: Mapping[str, Any], field: str) -> str | None:
    return tidy_name(_text(record, field)) or None


def _flag(record: Mapping[str, Any], field: str) -> bool | None:
    value = record.get(field)
    return {"true": True, "false": False}.get(str(value).strip().casefold())


def _coordinates(record: Mapping[str, Any], prefix: str) -> tuple[float | None, float | None]:
    """Latitude and longitude. A zero is a blank in disguise: nothing here lies on the equator or at Greenwich."""
    latitude, longitude = (_degrees(record.get(f"{prefix}{name}")) for name in ("Latitude", "Longitude"))
    if latitude and longitude and abs(latitude) <= 90 and abs(longitude) <= 180:
        return latitude, longitude
    return None, None


def _degrees(value: object) -> float | None:
    try:
        degrees = float(cast("Any", value))
    except (TypeError, ValueError, OverflowError):
        return None
    return degrees if math.isfinite(degrees) else None


def _unseen(done: int, total: int) -> None:
    del done, total
