"""One HTTP request as the app's views read it, whichever gateway or server it came through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit

from chalice.app import Request

from chalicelib.errors import Refused

MAX_BODY = 256 * 1024
"""Bytes of a request's body; a larger one gets 413."""

SAFE_METHODS = frozenset({"GET", "HEAD"})


class Unreadable(Refused):
    """The request itself cannot be read; `status` is the HTTP code that says how."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request. `path` is what the app routes by, `prefix` what a gateway put before it (`/prod`, or nothing).

    `values` are the path's own parts, `headers` have lower-case names, `address` is where it came from.
    """

    method: str
    path: str
    prefix: str
    values: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    body: bytes
    address: str

    @property
    def is_safe(self) -> bool:
        """Whether it may change nothing."""
        return self.method in SAFE_METHODS

    @property
    def host(self) -> str:
        """Host and port as the client wrote them, in lower case."""
        return self.headers.get("host", "").strip().lower()

    @property
    def media_type(self) -> str:
        """Of the body, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def cookie(self, name: str) -> str | None:
        """A cookie's value. What makes no sense counts as none."""
        try:
            found = SimpleCookie(self.headers.get("cookie", "")).get(name)
        except CookieError:
            return None
        return found.value if found else None

    def url(self, path: str) -> str:
        """The address of a path of this app, under the gateway's prefix."""
        return self.prefix + path


def incoming(request: Request) -> Incoming:
    """Read Chalice's request. Raises Unreadable for a body that is too large."""
    context, values = request.context, dict(request.uri_params or {})
    body = request.raw_body
    body = body.encode() if isinstance(body, str) else bytes(body)
    if len(body) > MAX_BODY:
        raise Unreadable(413, f"a request's body may hold {MAX_BODY // 1024} KiB")
    query: Any = request.query_params
    headers: dict[str, str] = dict(cast("Any", request.headers))
    return Incoming(
        method=request.method,
        path=path_of(request.path, values),
        prefix=_prefix(str(context.get("path", "")), request.path),
        values={name: unquote(value) for name, value in values.items()},
        query={name: query.getlist(name) for name in query} if query is not None else {},
        headers={name.lower(): value for name, value in headers.items()},
        body=body,
        address=str(context.get("identity", {}).get("sourceIp") or ""),
    )


def path_of(template: str, values: Mapping[str, str]) -> str:
    """A route's template with its parts filled in."""
    for name, value in values.items():
        template = template.replace("{" + name + "}", quote(unquote(value), safe=""))
    return template


def origin_host(url: str) -> str:
    """Host and port of an origin."""
    return urlsplit(url).netloc.lower()


def _prefix(full: str, template: str) -> str:
    """What stands before the app's own path in the path that was asked for: API Gateway's stage, a base path."""
    parts = full.rstrip("/").split("/")
    own = 0 if template == "/" else template.count("/")
    return "/".join(parts[: len(parts) - own])
