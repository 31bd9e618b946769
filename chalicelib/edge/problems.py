"""Errors as RFC 9457 problem details: each kind of refusal has its HTTP status, here and nowhere else."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from typing import Any

from chalice.app import Response
from pydantic import ValidationError

from chalicelib.edge.incoming import Unreadable
from chalicelib.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KeyReused,
    NotFound,
    QuotaReached,
    Refused,
    StillRunning,
    TooManyTries,
    Unauthorized,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
_STATUS: Mapping[type[Refused], HTTPStatus] = {
    NotFound: HTTPStatus.NOT_FOUND,
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    Conflict: HTTPStatus.CONFLICT,
    QuotaReached: HTTPStatus.CONFLICT,
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    TooManyTries: HTTPStatus.TOO_MANY_REQUESTS,
    KeyReused: HTTPStatus.UNPROCESSABLE_ENTITY,
    StillRunning: HTTPStatus.CONFLICT,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong with a request. `more` are members of the kind's own, `headers` those that the status needs."""

    status: int
    detail: str
    more: Mapping[str, Any]
    headers: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {"title": HTTPStatus(self.status).phrase, "status": self.status, "detail": self.detail, **self.more}

    def response(self) -> Response:
        return problem_response(self.to_json(), self.headers)


def problem_response(body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Problem details as an answer."""
    sent = {"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store", **(headers or {})}
    return Response(json.dumps(body), headers=dict(sent), status_code=body["status"])


def plain(status: int, detail: str) -> Problem:
    """A problem that needs no more than a sentence."""
    return Problem(status, detail, {}, {})


def of_refusal(refused: Refused) -> Problem:
    """A use case's no as a problem."""
    more: dict[str, Any] = {}
    headers: dict[str, str] = {}
    if isinstance(refused, Unreadable):
        return plain(refused.status, str(refused))
    if isinstance(refused, Invalid):
        more["errors"] = [{"pointer": f"#/{refused.field}", "message": str(refused)}]
    if isinstance(refused, Conflict):
        more["existing_id"] = str(refused.existing_id)
    if isinstance(refused, TooManyTries):
        headers["Retry-After"] = str(max(1, ceil(refused.retry_after.total_seconds())))
    if isinstance(refused, Unauthorized):
        headers["WWW-Authenticate"] = 'Bearer realm="sitebell"'
    status = next(status for kind, status in _STATUS.items() if isinstance(refused, kind))
    return Problem(status, str(refused), more, headers)


def of_validation(error: ValidationError) -> Problem:
    """What pydantic found, each with a JSON pointer; nothing of what was sent is said back."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    if any(item["type"] == "json_invalid" for item in found):
        return plain(HTTPStatus.BAD_REQUEST, "the body is no JSON")
    errors = [{"pointer": _pointer(item["loc"]), "message": item["msg"]} for item in found]
    named = ", ".join(sorted({item["pointer"].removeprefix("#/") or "the body" for item in errors}))
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"this makes no sense: {named}", {"errors": errors}, {})


def _pointer(parts: Iterable[int | str]) -> str:
    """RFC 6901, in a URI fragment as RFC 9457 shows it."""
    return "#/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in parts)
