"""A folder of recorded Recreation.gov bodies, served byte for byte or with its years moved into the future."""

import json
import re
from datetime import date
from pathlib import Path

from sandbox.campgrounds import Campground, JsonObject, Told, night_key

_NIGHT_KEY = re.compile(rb'"(\d{4})(-\d\d-\d\dT00:00:00Z"\s*:)')


class Recordings:
    """Bodies by name: `availability/{id}_{YYYY-MM}.json` (a month) and `campsites/{id}.json` (a search)."""

    def __init__(self, folder: Path, shift_years: int = 0) -> None:
        """Index `folder`; with `shift_years` every night key, and nothing else, moves that many years ahead.

        Weekdays move with the dates' new years; a recorded 29 February wants a leap year to move to.
        """
        if not folder.is_dir():
            raise NotADirectoryError(f"no folder of recordings at {folder}")
        self._shift_years = shift_years
        # Files are found in this index and never by a path made from a request.
        self._months = {path.stem: path for path in sorted(folder.glob("availability/*.json"))}
        self._searches = {path.stem: path for path in sorted(folder.glob("campsites/*.json"))}
        self.ids = frozenset({name.rpartition("_")[0] for name in self._months} | set(self._searches))
        """The ids of every campground of which there is a file."""

    def month(self, campground_id: str, first: date, told: Told) -> bytes | None:
        """Give the month that starts on `first`, changed only where something was said; None without a file."""
        path = self._months.get(f"{campground_id}_{first.year - self._shift_years:04d}-{first.month:02d}")
        if path is None:
            return None
        body = path.read_bytes()
        if self._shift_years:
            body = _NIGHT_KEY.sub(lambda key: b'"%04d%b' % (int(key[1]) + self._shift_years, key[2]), body)
        return _changed(body, told) if told else body

    def search(self, campground_id: str) -> bytes | None:
        """Give the recorded search for its campsites; None without a file."""
        path = self._searches.get(campground_id)
        return None if path is None else path.read_bytes()

    def campground(self, campground_id: str) -> Campground:
        """Give a campground's own record, made up around the name that its campsites tell."""
        body = self.search(campground_id)
        records: list[JsonObject] = json.loads(body).get("campsites", []) if body else []
        names = [str(record["asset_name"]) for record in records if record.get("asset_name")]
        name = names[0] if names else f"Campground {campground_id}"
        return Campground(campground_id, name, time_zone="America/Denver")


def _changed(body: bytes, told: Told) -> bytes:
    content: JsonObject = json.loads(body)
    for (campsite_id, night), status in told.items():
        content["campsites"][campsite_id]["availabilities"][night_key(night)] = status
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
