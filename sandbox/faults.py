"""The ways in which the stand-in booking site misbehaves on demand, each one seen or reported of the real one."""

import json
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from typing import Any, Literal

from sandbox.campgrounds import JsonObject, night_key
from sandbox.wire import Answer, Cut, html_answer

Kind = Literal["availability", "campsites", "campground"]
"""Which of the three kinds of path: a month, the campsite search, the campground's record."""

KINDS: tuple[Kind, ...] = ("availability", "campsites", "campground")


class Fault(Enum):
    """One way to answer badly."""

    STATUS = "status"  # another status with an empty body
    STATUS_HTML = "status html"  # another status with a page
    CHALLENGE = "challenge"  # 200 with a page, as from a bot check
    TRUNCATED = "truncated"  # whole HTTP around half of the JSON
    EMPTY_OBJECT = "empty object"  # {}
    COUNT_ZERO = "count zero"  # well formed, and nothing in it
    NO_NIGHTS = "no nights"  # every campsite's availabilities are {}
    NULL_NIGHTS = "null nights"  # a campsite's availabilities are null
    MISSING_NIGHTS = "missing nights"  # nights of a campsite are not there
    NULL_STATUS = "null status"  # nights of a campsite have the status null
    UNKNOWN_STATUS = "unknown status"  # nights of a campsite have a status that nobody knows
    NULL_CAMPSITE = "null campsite"  # null in the place of a campsite's record
    MISSING_CAMPSITE = "missing campsite"  # a campsite is not there
    NULL_TYPE = "null type"  # a campsite's type is null
    INT_IDS = "int ids"  # every campsite_id is a number
    SLOW = "slow"  # the right answer, `seconds` late
    DRIP = "drip"  # the right answer, a byte every `seconds`
    DROP_BEFORE_HEADERS = "drop before headers"
    DROP_AFTER_HEADERS = "drop after headers"
    DROP_MIDWAY = "drop midway"
    RESET = "reset"


_MONTH_ONLY = frozenset(
    {Fault.NO_NIGHTS, Fault.NULL_NIGHTS, Fault.MISSING_NIGHTS, Fault.NULL_STATUS, Fault.UNKNOWN_STATUS}
)
_LISTS_ONLY = frozenset({Fault.COUNT_ZERO, Fault.NULL_CAMPSITE, Fault.MISSING_CAMPSITE, Fault.NULL_TYPE, Fault.INT_IDS})
_CUTS = {
    Fault.DROP_BEFORE_HEADERS: Cut.BEFORE_HEADERS,
    Fault.DROP_AFTER_HEADERS: Cut.AFTER_HEADERS,
    Fault.DROP_MIDWAY: Cut.MIDWAY,
    Fault.RESET: Cut.RESET,
}


def kinds_of(fault: Fault) -> frozenset[Kind]:
    """Give the kinds of path that can have this fault."""
    if fault in _MONTH_ONLY:
        return frozenset({"availability"})
    if fault in _LISTS_ONLY:
        return frozenset({"availability", "campsites"})
    return frozenset(KINDS)


@dataclass(slots=True)
class Trouble:
    """A fault, where it strikes, how often still (`times`, None: always), and its particulars."""

    fault: Fault
    kinds: frozenset[Kind]
    campground_id: str | None
    times: int | None
    status: int
    retry_after: str | None
    seconds: float
    campsite_id: str | None
    night: date | None

    def strikes(self, kind: Kind, campground_id: str) -> bool:
        """Say whether this answer is concerned."""
        here = self.campground_id in {None, campground_id}
        return here and kind in self.kinds and self.times != 0

    def spoil(self, kind: Kind, answer: Answer) -> Answer:
        """Give the bad answer in the place of the good one."""
        if self.fault in _CUTS:
            return replace(answer, cut=_CUTS[self.fault])
        match self.fault:
            case Fault.STATUS:
                return Answer(self.status, headers=self._hint())
            case Fault.STATUS_HTML:
                return html_answer("Something went wrong", "Please try again later.", self.status, self._hint())
            case Fault.CHALLENGE:
                return html_answer("One moment", "We are checking that you are a person.", headers=self._hint())
            case Fault.TRUNCATED:
                return replace(answer, body=answer.body[: len(answer.body) // 2])
            case Fault.SLOW:
                return replace(answer, delay=self.seconds)
            case Fault.DRIP:
                return replace(answer, drip=self.seconds)
            case _ if answer.status == 200:
                return replace(answer, body=self._reshape(kind, answer.body))
            case _:
                return answer

    def _hint(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": self.retry_after}

    def _reshape(self, kind: Kind, body: bytes) -> bytes:
        """Give the body with the fault's change of shape, wherever the body came from."""
        content: JsonObject = json.loads(body)
        if self.fault is Fault.EMPTY_OBJECT:
            content = {}
        elif kind == "availability":
            content["campsites"] = self._reshape_month(content["campsites"])
            content["count"] = len(content["campsites"])
        elif self.fault is Fault.COUNT_ZERO:
            content = {"size": 0, "spelling_autocorrected": False, "start": "0", "total": 0}
        else:
            records: list[JsonObject] = content.get("campsites", [])
            keyed = self._reshape_month({record["campsite_id"]: record for record in records})
            content["campsites"] = list(keyed.values())
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()

    def _reshape_month(self, campsites: dict[str, Any]) -> dict[str, Any]:
        if self.fault is Fault.COUNT_ZERO:
            return {}
        if self.fault is Fault.MISSING_CAMPSITE:
            return {key: record for key, record in campsites.items() if key not in self._chosen(campsites)}
        return campsites | {key: self._reshape_campsite(campsites[key]) for key in self._chosen(campsites)}

    def _chosen(self, campsites: dict[str, Any]) -> list[str]:
        """Give the ids concerned: the named one; else all for faults of a whole answer, and the first for the rest."""
        if self.campsite_id is not None:
            return [self.campsite_id] if self.campsite_id in campsites else []
        return list(campsites) if self.fault in {Fault.INT_IDS, Fault.NO_NIGHTS} else list(campsites)[:1]

    def _reshape_campsite(self, record: JsonObject) -> JsonObject | None:
        match self.fault:
            case Fault.NULL_CAMPSITE:
                return None
            case Fault.NULL_TYPE:
                return record | {"campsite_type" if "campsite_type" in record else "type": None}
            case Fault.INT_IDS:
                return record | {"campsite_id": int(record["campsite_id"])}
            case Fault.NO_NIGHTS:
                return record | {"availabilities": {}, "quantities": {}}
            case Fault.NULL_NIGHTS:
                return record | {"availabilities": None, "quantities": None}
            case Fault.NULL_STATUS:
                return record | {"availabilities": self._renamed(record["availabilities"], None)}
            case Fault.UNKNOWN_STATUS:
                return record | {"availabilities": self._renamed(record["availabilities"], "Held For Owls")}
            case _:  # MISSING_NIGHTS
                nights = record["availabilities"]
                return record | {"availabilities": {key: nights[key] for key in nights if not self._concerns(key)}}

    def _renamed(self, nights: JsonObject, status: str | None) -> JsonObject:
        return {key: status if self._concerns(key) else old for key, old in nights.items()}

    def _concerns(self, key: str) -> bool:
        return self.night is None or key == night_key(self.night)
