"""A stand-in Recreation.gov: its private API as observed 2023-2026, with invented or recorded campgrounds."""

import re
import threading
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

from sandbox.campgrounds import Campground, facility_body, month_body, search_body, search_records
from sandbox.faults import Fault, Kind, Trouble, kinds_of
from sandbox.nights import AVAILABLE, RESERVED, Change, Nights, each_night
from sandbox.recordings import Recordings
from sandbox.server import Clock, StandIn, utc_now
from sandbox.wire import TYPE_JSON, Answer, Request, html_answer, json_answer

_MONTH = re.compile(r"/api/camps/availability/campground/([^/]+)/month")
_CAMPGROUND = re.compile(r"/api/camps/campgrounds/([^/]+)")
_START_DATE = re.compile(r"(\d{4}-\d\d-\d\d)T00:00:00(?:\.000)?Z")
_NOT_FOUND = json_answer({"error": "Not Found"}, status=404)


class BookingSite(StandIn):
    """A booking site on loopback.

    It refuses library user agents, answers 429 beyond `per_minute` requests (of months and searches) until nobody has
    asked for `silence`, shows only nights of the asked month from the clock's today on, and knows what it was told.
    """

    def __init__(
        self,
        *,
        now: Clock = utc_now,
        per_minute: int | None = None,
        silence: timedelta = timedelta(minutes=6),
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Start it; `per_minute` None means no limit, `port` 0 a free one; `now` also decides which nights are past."""
        self._campgrounds: dict[str, Campground] = {}
        self._recordings: list[Recordings] = []
        self._nights = Nights()
        self._troubles: list[Trouble] = []
        self._pace = _Pace(per_minute, silence)
        self._lock = threading.Lock()
        super().__init__(now=now, host=host, port=port)

    def add_campground(self, campground: Campground) -> None:
        """Offer an invented campground, or replace the one of the same id."""
        with self._lock:
            self._campgrounds[campground.id] = campground

    def serve_recordings(self, folder: Path, shift_years: int = 0) -> None:
        """Offer the recorded bodies of a folder (see `Recordings`), their nights `shift_years` years later."""
        with self._lock:
            self._recordings.append(Recordings(folder, shift_years))

    def set(
        self,
        campground_id: str,
        campsite_id: str,
        nights: date | Iterable[date],
        status: str,
        *,
        after: int = 0,
        at: datetime | None = None,
    ) -> None:
        """Give one or several nights a status: at once, `after` so many more answers for the month, or from `at` on.

        An answer spoilt by a fault counts, a refusal (403, 429) does not. Recorded campgrounds can be changed, too.
        """
        with self._lock:
            self._check(campground_id, campsite_id)
            for night in each_night(nights):
                self._nights.change(Change(campground_id, campsite_id, night, status), after=after, at=at)

    def open(
        self,
        campground_id: str,
        campsite_id: str,
        nights: date | Iterable[date],
        *,
        after: int = 0,
        at: datetime | None = None,
    ) -> None:
        """Make nights "Available"; when: see `set`."""
        self.set(campground_id, campsite_id, nights, AVAILABLE, after=after, at=at)

    def take(
        self,
        campground_id: str,
        campsite_id: str,
        nights: date | Iterable[date],
        *,
        after: int = 0,
        at: datetime | None = None,
    ) -> None:
        """Make nights "Reserved"; when: see `set`."""
        self.set(campground_id, campsite_id, nights, RESERVED, after=after, at=at)

    def flicker(
        self,
        campground_id: str,
        campsite_id: str,
        nights: date | Iterable[date],
        *,
        start: datetime,
        open_for: timedelta,
        taken_for: timedelta,
    ) -> None:
        """Let nights open at `start`, be taken after `open_for`, open again after `taken_for`, and so on until set."""
        with self._lock:
            self._check(campground_id, campsite_id)
            for night in each_night(nights):
                change = Change(campground_id, campsite_id, night, AVAILABLE)
                self._nights.flicker(change, start, open_for, taken_for)

    def misbehave(
        self,
        fault: Fault,
        *,
        on: Kind | None = None,
        campground_id: str | None = None,
        times: int | None = 1,
        status: int = 500,
        retry_after: int | str | None = None,
        seconds: float = 0.1,
        campsite_id: str | None = None,
        night: date | None = None,
    ) -> None:
        """Answer badly, `times` times or (None) until `behave()`; several faults in one place come one after the other.

        `on` and `campground_id` None mean any; `status` and `retry_after` are for STATUS and STATUS_HTML, `seconds` for
        SLOW and DRIP; `campsite_id` (None: the first one) and `night` (None: all) for the faults of a campsite's shape.
        """
        possible = kinds_of(fault)
        kinds = possible if on is None else frozenset[Kind]({on}) & possible
        if not kinds:
            raise ValueError(f"{fault} cannot happen on {on}")
        hint = None if retry_after is None else str(retry_after)
        with self._lock:
            self._troubles.append(
                Trouble(fault, kinds, campground_id, times, status, hint, seconds, campsite_id, night)
            )

    def behave(self) -> None:
        """Forget every fault that is left."""
        with self._lock:
            self._troubles.clear()

    def respond(self, request: Request) -> Answer:
        """Give the answer: refusals first, then what the path names, spoilt if a fault is due."""
        if _is_library(request.user_agent):
            return html_answer("Request refused", "This client is not welcome here.", status=403)
        route = _route(request)
        with self._lock:
            # The campground's record is not throttled on the real site.
            if (route is None or route[0] != "campground") and self._pace.refuses(request.at):
                return Answer(429)
            if route is None:
                return _NOT_FOUND
            answer = self._answer(*route, request)
            trouble = next((trouble for trouble in self._troubles if trouble.strikes(*route)), None)
            if trouble is not None and trouble.times is not None:
                trouble.times -= 1
        return answer if trouble is None else trouble.spoil(route[0], answer)

    def _answer(self, kind: Kind, campground_id: str, request: Request) -> Answer:
        match kind:
            case "availability":
                return self._month(campground_id, request)
            case "campsites":
                return self._search(campground_id, request)
            case "campground":
                return self._facility(campground_id)

    def _month(self, campground_id: str, request: Request) -> Answer:
        if ":" in request.query:
            return json_answer({"error": "query not encoded"}, status=400)
        first = _start_date(request)
        if first is None:
            return json_answer({"error": "start_date is not a moment at midnight"}, status=400)
        if first.day != 1:
            return json_answer({"error": "start_date must be the first day of a month"}, status=400)
        campground = self._campgrounds.get(campground_id)
        recordings = self._recordings_of(campground_id)
        if campground is None and recordings is None:
            return _NOT_FOUND
        told = self._nights.told(campground_id, first, request.at)
        if campground is not None:
            return json_answer(month_body(campground, first, request.at.date(), told))
        body = recordings.month(campground_id, first, told) if recordings else None
        return json_answer({"campsites": {}, "count": 0}) if body is None else _json_bytes(body)

    def _search(self, campground_id: str, request: Request) -> Answer:
        start, size = int(request.params.get("start", ["0"])[0]), int(request.params.get("size", ["10"])[0])
        campground = self._campgrounds.get(campground_id)
        if campground is not None:
            return json_answer(search_body(search_records(campground), start, size))
        recordings = self._recordings_of(campground_id)
        body = recordings.search(campground_id) if recordings else None
        return json_answer(search_body([], start, size)) if body is None else _json_bytes(body)

    def _facility(self, campground_id: str) -> Answer:
        campground = self._campgrounds.get(campground_id)
        recordings = self._recordings_of(campground_id)
        if campground is None and recordings is not None:
            campground = recordings.campground(campground_id)
        return _NOT_FOUND if campground is None else json_answer(facility_body(campground))

    def _recordings_of(self, campground_id: str) -> Recordings | None:
        return next((recordings for recordings in self._recordings if campground_id in recordings.ids), None)

    def _check(self, campground_id: str, campsite_id: str) -> None:
        """Refuse to be told about what is not offered: it would never show, and a test would wonder."""
        campground = self._campgrounds.get(campground_id)
        known = {site.id for site in campground.sites} if campground else {campsite_id}
        if campsite_id not in known or (campground is None and self._recordings_of(campground_id) is None):
            raise LookupError(f"no campsite {campsite_id} at campground {campground_id}")


class _Pace:
    """Counts the requests of the last minute; once over the limit, only silence helps."""

    def __init__(self, per_minute: int | None, silence: timedelta) -> None:
        self._per_minute = per_minute
        self._silence = silence
        self._recent: list[datetime] = []
        self._refused_at: datetime | None = None

    def refuses(self, now: datetime) -> bool:
        if self._per_minute is None:
            return False
        self._recent = [moment for moment in self._recent if now - moment < timedelta(minutes=1)]
        silent = self._refused_at is None or now - self._refused_at >= self._silence
        if silent and len(self._recent) < self._per_minute:
            self._refused_at = None
            self._recent.append(now)
            return False
        self._refused_at = now  # each refused request starts the silence anew
        return True


def _is_library(user_agent: str) -> bool:
    return not user_agent.strip() or user_agent.lower().startswith(("python-", "httpx"))


def _route(request: Request) -> tuple[Kind, str] | None:
    if request.method != "GET":
        return None
    if found := _MONTH.fullmatch(request.path):
        return "availability", found[1]
    if found := _CAMPGROUND.fullmatch(request.path):
        return "campground", found[1]
    if request.path == "/api/search/campsites":
        filters = request.params.get("fq", [])
        return "campsites", next((fq.partition(":")[2] for fq in filters if fq.startswith("asset_id:")), "")
    return None


def _start_date(request: Request) -> date | None:
    found = _START_DATE.fullmatch(request.params.get("start_date", [""])[0])
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def _json_bytes(body: bytes) -> Answer:
    return replace(json_answer(None), body=body, headers={"Content-Type": TYPE_JSON})
