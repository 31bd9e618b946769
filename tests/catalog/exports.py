"""Small RIDB exports made for tests, in both formats."""

import csv
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]


def facility(facility_id: str = "100", name: str = "Upper Pines", **more: Any) -> Record:
    """An enabled, reservable campground, unless told otherwise."""
    return {
        "FacilityID": facility_id,
        "ParentRecAreaID": "",
        "FacilityName": name,
        "FacilityDescription": '<h2>Overview</h2>\n"Tall", trees',
        "FacilityTypeDescription": "Campground",
        "FacilityLongitude": -119.5,
        "FacilityLatitude": 37.7,
        "Reservable": True,
        "Enabled": True,
        **more,
    }


def address(facility_id: str, state: str, kind: str = "Default") -> Record:
    return {"FacilityID": facility_id, "FacilityAddressType": kind, "AddressStateCode": state}


def area(area_id: str = "1", name: str = "Yosemite National Park", **more: Any) -> Record:
    return {"RecAreaID": area_id, "RecAreaName": name, "RecAreaLongitude": 0, "RecAreaLatitude": 0, **more}


def area_address(area_id: str, state: str, kind: str = "Default") -> Record:
    return {"RecAreaID": area_id, "RecAreaAddressType": kind, "AddressStateCode": state}


def export(
    facilities: Iterable[Any] = (),
    addresses: Iterable[Any] = (),
    areas: Iterable[Any] = (),
    area_addresses: Iterable[Any] = (),
    *,
    kind: str = "json",
) -> io.BytesIO:
    """A zip of the four members that matter and one that does not."""
    members = {
        "Facilities": facilities,
        "FacilityAddresses": addresses,
        "RecAreas": areas,
        "RecAreaAddresses": area_addresses,
        "Media": [{"URL": "not read"}],
    }
    encode = as_json if kind == "json" else as_csv
    return zipped({f"{name}_API_v1.{kind}": encode(list(records)) for name, records in members.items()})


def zipped(members: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    file.seek(0)
    return file


def as_json(records: list[Any]) -> bytes:
    return json.dumps({"RECDATA": records}).encode()


def as_csv(records: list[Record]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(records[0]) if records else ["Nothing"])
    writer.writeheader()
    for record in records:
        writer.writerow({name: _csv_value(value) for name, value in record.items()})
    return file.getvalue().encode()


def _csv_value(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
