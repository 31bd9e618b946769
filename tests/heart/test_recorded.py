"""The whole way on real input: recorded answers of Recreation.gov, their years moved into the future, over HTTP."""

import json
import re
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chalicelib.scans import views
from tests.support.live import START, Live

RECORDED = Path(__file__).parents[2].parent / "shared" / "recorded"
SHIFT = 4
MONTHS = sorted((RECORDED / "recgov" / "availability").glob("*.json"))

pytestmark = pytest.mark.skipif(not MONTHS, reason="the recorded answers are not part of the project")


def expected(path: Path) -> dict[str, list[str]]:
    """Open nights by campsite, found by a plain loop, less sites that nobody can watch."""
    nights: dict[str, list[str]] = defaultdict(list)
    for site_id, site in json.loads(path.read_text())["campsites"].items():
        if site["type_of_use"] == "Day" or site.get("hide_external") or site["campsite_type"] == "MANAGEMENT":
            continue
        for key, status in sorted((site["availabilities"] or {}).items()):
            if status == "Available":
                night = date.fromisoformat(key[:10])
                nights[site_id].append(night.replace(year=night.year + SHIFT).isoformat())
    return dict(nights)


def test_every_recorded_campground_gives_its_nights_and_one_true_message(live: Live) -> None:
    live.site.serve_recordings(RECORDED / "recgov", shift_years=SHIFT)
    user_id, _ = live.camper()
    wanted: dict[Any, dict[str, list[str]]] = {}
    for path in MONTHS:
        campground, year, month = re.fullmatch(r"(\w+)_(\d{4})-(\d\d)\.json", path.name).groups()  # pyright: ignore[reportOptionalMemberAccess]
        start = date(int(year) + SHIFT, int(month), 1)
        end = date(start.year, start.month + 1, 1)
        scan_id = live.scan(user_id, campground=campground, dates=(start, end), mode="summary")
        wanted[scan_id] = expected(path)
    live.clock.now = START.replace(month=7, day=1, hour=0)

    result = live.detect(seconds=600)
    blank = [path.name for path in MONTHS if 'availabilities":{"' not in path.read_text().replace(" ", "")]
    assert (result.counts["targets_checked"], result.counts["targets_failed"]) == (
        len(MONTHS) + 1 - len(blank),
        len(blank),
    )
    assert result.counts["openings"] == sum(len(nights) for sites in wanted.values() for nights in sites.values())

    for scan_id, nights in wanted.items():
        shown = views.show(live.deps, scan_id, by=user_id).to_json()["results"]
        assert {found["campsite_id"]: found["nights"] for found in shown} == nights

    assert result.counts["intents"] == sum(1 for nights in wanted.values() if nights)
    live.drain(seconds=600)
    assert {row["status"] for row in live.rows()} == {"sent"}
    assert len(live.push.messages) == result.counts["intents"]
    assert all(len(message.message) <= 1024 for message in live.push.messages)
    told = {str(row["scan_id"]): row["nights"] for row in live.history()}
    assert told == {str(scan_id): nights for scan_id, nights in wanted.items() if nights}
