"""What goes over the wire between a client and a stand-in: requests as they came, answers as they leave."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto

TYPE_JSON = "application/json"
TYPE_HTML = "text/html; charset=utf-8"


class Cut(Enum):
    """Where a connection is dropped instead of being answered to the end."""

    NOT = auto()
    BEFORE_HEADERS = auto()  # closed in good order (FIN) without a byte of an answer
    AFTER_HEADERS = auto()  # the head promises a body that never comes
    MIDWAY = auto()  # half of the promised body comes
    RESET = auto()  # torn down (RST) without a byte of an answer


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived; `query` is raw, `params` is the same decoded, `at` is by the stand-in's clock."""

    method: str
    path: str
    query: str
    params: Mapping[str, list[str]]
    headers: Mapping[str, str]
    """Header names are in lower case."""
    body: bytes
    at: datetime

    @property
    def user_agent(self) -> str:
        """The User-Agent header, or "" when there was none."""
        return self.headers.get("user-agent", "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back; `delay` is seconds before the first byte, `drip` seconds between two bytes of the body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    drip: float = 0.0
    cut: Cut = Cut.NOT

    def head(self) -> bytes:
        """Give status line and headers as they go out, the true Content-Length included."""
        phrase = http.client.responses.get(self.status, "Unknown")
        lines = [f"HTTP/1.1 {self.status} {phrase}", *(f"{name}: {value}" for name, value in self.headers.items())]
        return "\r\n".join([*lines, f"Content-Length: {len(self.body)}", "", ""]).encode("latin-1")


def json_answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Give an answer whose body is `content` as compact JSON."""
    body = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return Answer(status, body, {"Content-Type": TYPE_JSON, **(headers or {})})


def html_answer(title: str, text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Give an answer whose body is a short HTML page."""
    body = f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>"
    return Answer(status, body.encode(), {"Content-Type": TYPE_HTML, **(headers or {})})
