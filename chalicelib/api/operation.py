"""The one decorator that carries every route: who may call, parsing, validating, repeating, and what errors become."""

import base64
import binascii
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from http import HTTPStatus
from typing import Any, TypeVar
from uuid import UUID

from chalice.app import Blueprint, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chalicelib import wiring
from chalicelib.accounts import repeats
from chalicelib.accounts.repeats import Answered
from chalicelib.db.engine import STORAGE_FAULTS, NotAtHead
from chalicelib.deps import Deps
from chalicelib.edge import callers, csrf, problems
from chalicelib.edge.callers import Caller, Who
from chalicelib.edge.incoming import Incoming, Unreadable, incoming
from chalicelib.errors import Forbidden, Invalid, NotFound, Refused, TooManyTries, Unauthorized
from chalicelib.history import iso
from chalicelib.settings import SettingsError

log = logging.getLogger(__name__)

Model = TypeVar("Model", bound=BaseModel)
Cursor = tuple[datetime, UUID]


class Body(BaseModel):
    """What a request sends: nothing but what is named, and each of its own type."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class Query(BaseModel):
    """What stands behind the question mark: words, read as what they stand for."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Page(Query):
    """Which part of a list."""

    limit: int = Field(50, ge=1, le=200, description="Items at most.")
    cursor: str | None = Field(None, max_length=400, description="`next_cursor` of the page before.")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with a status of its own. `kept` is what is said again to a repeated request, where that is less."""

    body: Any
    status: int = HTTPStatus.OK
    kept: Any = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operation, its parts read and allowed."""

    deps: Deps
    request: Incoming
    caller: Caller | None
    body: Any = None
    query: Any = None

    @property
    def user_id(self) -> UUID:
        """Of the caller, where the operation is not for everybody."""
        if self.caller is None:
            raise Unauthorized("sign in, or send an API token: Authorization: Bearer …")
        return self.caller.user.id

    @property
    def known(self) -> Caller:
        """The caller, where the operation is not for everybody."""
        if self.caller is None:
            raise Unauthorized("sign in, or send an API token: Authorization: Bearer …")
        return self.caller

    def id(self, name: str) -> UUID:
        """An id in the path. Raises NotFound: what is no id names nothing."""
        try:
            return UUID(self.request.values[name])
        except ValueError:
            raise NotFound(name.removesuffix("_id"), "of this id") from None


View = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, as the decorator registered it and as OpenAPI tells it."""

    method: str
    path: str
    who: Who
    view: View
    summary: str
    status: int
    body: type[Body] | None
    query: type[Query] | None
    answer: Any
    refuses: Sequence[int] = field(default_factory=tuple)


OPERATIONS: list[Operation] = []
"""Every operation of the API, in the order of the files that hold them."""


def operation(
    routes: Blueprint,
    method: str,
    path: str,
    who: Who,
    *,
    answer: Any = None,
    status: int = HTTPStatus.OK,
    body: type[Body] | None = None,
    query: type[Query] | None = None,
    refuses: Sequence[int] = (),
) -> Callable[[View], View]:
    """Make a view an operation at `/api` + path.

    `answer` is the type of its body (None: there is none), `refuses` are HTTP statuses beyond the usual ones.
    """

    def register(view: View) -> View:
        summary = " ".join((view.__doc__ or "").split("\n\n")[0].split())
        made = Operation(method, f"/api{path}", who, view, summary, status, body, query, answer, refuses)
        OPERATIONS.append(made)

        def handle(**_values: str) -> Response:
            return _handle(made, routes.current_request)

        methods = ["GET", "HEAD"] if method == "GET" else [method]
        routes.route(made.path, methods=methods, content_types=["*/*"], name=view.__name__)(handle)
        return view

    return register


def _handle(made: Operation, request: Any) -> Response:
    """From a request to its answer; whatever goes wrong is a problem, and says nothing that should not be said."""
    try:
        response = _answer(made, incoming(request))
    except Refused as refused:
        response = problems.of_refusal(refused).response()
    except ValidationError as error:
        response = problems.of_validation(error).response()
    except (SettingsError, NotAtHead) as error:
        log.error("%s %s cannot be served: %s", made.method, made.path, error)  # noqa: TRY400  # no traceback helps here
        response = problems.plain(503, "this instance is not set up: see /api/ready").response()
    except STORAGE_FAULTS as error:
        log.error("the storage failed at %s %s: %s", made.method, made.path, type(error).__name__)  # noqa: TRY400
        response = problems.plain(503, "the storage does not answer: try again in a moment").response()
    except Exception as error:  # noqa: BLE001  # a fault of ours; its text may quote what was sent
        log.error("%s %s failed: %s", made.method, made.path, _where(error))  # noqa: TRY400
        response = problems.plain(500, "something is wrong on our side").response()
    if request.method == "HEAD":
        response.body = ""
    return response


def _answer(made: Operation, request: Incoming) -> Response:
    with wiring.serving() as deps:
        caller = callers.identify(deps, request) if made.who is not Who.ANYONE else None
        callers.admit(deps, caller, made.who, request)
        if not request.is_safe:
            _check_sender(deps, caller, request)
        query = made.query.model_validate(_words(request.query)) if made.query else _no_query(request)
        body = _body(made, request)
        call = Call(deps, request, caller, body, query)
        key = request.headers.get("idempotency-key") if request.method == "POST" else None
        if key is None or caller is None:
            return _response(_run(made, call))
        return _once(made, call, key, caller.user.id)


def _check_sender(deps: Deps, caller: Caller | None, request: Incoming) -> None:
    """What a browser sends by itself must come from our own pages, and with a session prove that it does."""
    if caller is None or not caller.ambient:
        return
    callers.check_same_origin(deps, request)
    if caller.session_id is not None:
        csrf.check(deps, request, caller, request.headers.get(csrf.HEADER))


def _body(made: Operation, request: Incoming) -> Body | None:
    """The body, read and validated. Raises Unreadable for another media type, ValidationError."""
    if made.body is None:
        if request.body.strip() not in {b"", b"{}"}:
            raise Unreadable(HTTPStatus.BAD_REQUEST, "this operation takes no body")
        return None
    if request.media_type != "application/json":
        raise Unreadable(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON, as Content-Type: application/json")
    return made.body.model_validate_json(request.body)


def _words(query: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Each parameter once. Raises Invalid for one that comes twice."""
    for name, values in query.items():
        if len(values) != 1:
            raise Invalid(name, "give it once")
    return {name: values[0] for name, values in query.items()}


def _no_query(request: Incoming) -> None:
    for name in request.query:
        raise Invalid(name, "there is no such parameter here")


def _run(made: Operation, call: Call) -> Answer:
    result = made.view(call)
    return result if isinstance(result, Answer) else Answer(result, made.status)


def _once(made: Operation, call: Call, key: str, user_id: UUID) -> Response:
    """Do it once for a key: what is answered is kept, refusals of the use case too; what broke may be tried again."""
    sent = f"{call.request.method} {call.request.path}\n".encode() + call.request.body
    before = repeats.begin(call.deps, user_id, key, sha256(sent).hexdigest())
    if before is not None:
        return _again(before)
    try:
        answer = _run(made, call)
    except (TooManyTries, Unauthorized, Forbidden):
        repeats.abandon(call.deps, user_id, key)
        raise
    except Refused as refused:
        problem = problems.of_refusal(refused)
        if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            repeats.finish(call.deps, user_id, key, Answered(problem.status, problem.to_json()))
        else:
            repeats.abandon(call.deps, user_id, key)
        raise
    except BaseException:
        repeats.abandon(call.deps, user_id, key)
        raise
    kept = answer.body if answer.kept is None else answer.kept
    repeats.finish(call.deps, user_id, key, Answered(answer.status, kept))
    return _response(answer)


def _again(before: Answered) -> Response:
    if before.status >= HTTPStatus.BAD_REQUEST:
        return problems.problem_response(before.answer)
    return _response(Answer(before.answer, before.status))


def _response(answer: Answer) -> Response:
    headers: dict[str, str | list[str]] = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if answer.status == HTTPStatus.NO_CONTENT:
        return Response("", headers=headers, status_code=answer.status)
    headers["Content-Type"] = "application/json"
    return Response(json.dumps(answer.body), headers=headers, status_code=answer.status)


def _where(error: Exception) -> str:
    """A fault's type and place, without its text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}" if trace else ""
    return type(error).__name__ + place


# --- lists -----------------------------------------------------------------------------------------------------------


def listed(items: Sequence[Any], limit: int, cursor_of: Callable[[Any], str]) -> dict[str, Any]:
    """A page of a list. Take one item more than the limit: it tells whether there is a next page."""
    shown = items[:limit]
    return {
        "items": [item.to_json() for item in shown],
        "next_cursor": cursor_of(shown[-1]) if len(items) > limit and shown else None,
    }


def moment_cursor(moment: datetime, row_id: UUID) -> str:
    """Where a list that is in the order of time goes on."""
    return word_cursor(f"{iso(moment)} {row_id}")


def word_cursor(word: str) -> str:
    """Where a list in the order of words goes on."""
    return base64.urlsafe_b64encode(word.encode()).decode().rstrip("=")


def read_word(cursor: str | None) -> str:
    """The way back; an empty word begins at the beginning. Raises Invalid."""
    if cursor is None:
        return ""
    try:
        word = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        raise Invalid("cursor", "this is no next_cursor of this list") from None
    if not word.isprintable():
        raise Invalid("cursor", "this is no next_cursor of this list")
    return word


def read_moment(cursor: str | None) -> Cursor | None:
    """The way back from `moment_cursor`. Raises Invalid."""
    if cursor is None:
        return None
    moment, _, row_id = read_word(cursor).partition(" ")
    try:
        read = datetime.fromisoformat(moment)
        if read.tzinfo is None or not 1970 < read.year < 9000:  # what a database can hold
            raise ValueError
        return read, UUID(row_id)
    except ValueError:
        raise Invalid("cursor", "this is no next_cursor of this list") from None
