"""What the stand-in Pushover finds wrong with a message, and the scripted ways in which it can answer instead."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

_KEY = re.compile(r"[A-Za-z0-9]{30}")
_LIMITS = {"message": 1024, "title": 250, "url": 512, "url_title": 100}
"""Greatest length in characters (Pushover's public API documentation, 2026)."""


class Outcome(Enum):
    """One way to answer a message; those that accept still refuse what is invalid."""

    ACCEPT = "accept"
    # Refusals, whatever the message says.
    BAD_TOKEN = "bad token"
    BAD_USER = "bad user"
    NO_MESSAGE = "no message"
    MESSAGE_TOO_LONG = "message too long"
    TITLE_TOO_LONG = "title too long"
    URL_TOO_LONG = "url too long"
    URL_TITLE_TOO_LONG = "url title too long"
    QUOTA = "quota"  # 429, nothing left until the reset that the headers name
    BUSY = "busy"  # 429 with Retry-After
    ERROR = "error"  # 500 with a page
    UNAVAILABLE = "unavailable"  # 503 with Retry-After
    REDIRECT = "redirect"  # 302 to the same address
    REQUEST_TIMEOUT = "request timeout"  # 408
    # Answers with 200 that prove nothing; nothing is accepted.
    STATUS_ZERO = "status 0"
    PAGE = "page"
    EMPTY_OBJECT = "empty object"
    NO_ID = "no id"  # status 1 without a request id
    TRUNCATED = "truncated"
    # Accepted, and the answer is late or lost.
    SLOW = "slow"  # comes `seconds` late
    DRIP = "drip"  # a byte every `seconds`
    ACCEPT_THEN_DROP = "accept then drop"  # closed (FIN) without a byte
    ACCEPT_THEN_RESET = "accept then reset"  # torn down (RST)
    # Not accepted, and the connection lost.
    DROP_BEFORE_READING = "drop before reading"  # the request stays unread
    DROP = "drop"  # read, then closed
    RESET = "reset"  # read, then torn down


@dataclass(frozen=True, slots=True)
class Reply:
    """An outcome with particulars: `seconds` for SLOW and DRIP, `retry_after` and `reset` for headers."""

    outcome: Outcome
    seconds: float = 0.1
    retry_after: int | str | None = None
    """Goes out as it is; BUSY and UNAVAILABLE say 30 seconds when it is None, the others nothing."""
    reset: datetime | None = None
    """When QUOTA says that messages are free again; None: the first of next month."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong: the field, the word beside it, and a sentence."""

    field: str
    word: str
    sentence: str


REFUSALS = {
    Outcome.BAD_TOKEN: Problem("token", "invalid", "the application token is not known"),
    Outcome.BAD_USER: Problem("user", "invalid", "the user key is not known"),
    Outcome.NO_MESSAGE: Problem("message", "missing", "a message is needed"),
    Outcome.MESSAGE_TOO_LONG: Problem("message", "too long", "the message has more than 1024 characters"),
    Outcome.TITLE_TOO_LONG: Problem("title", "too long", "the title has more than 250 characters"),
    Outcome.URL_TOO_LONG: Problem("url", "too long", "the url has more than 512 characters"),
    Outcome.URL_TITLE_TOO_LONG: Problem("url_title", "too long", "the url_title has more than 100 characters"),
}
_TOO_LONG = {
    "message": Outcome.MESSAGE_TOO_LONG,
    "title": Outcome.TITLE_TOO_LONG,
    "url": Outcome.URL_TOO_LONG,
    "url_title": Outcome.URL_TITLE_TOO_LONG,
}


def problem_with_keys(fields: Mapping[str, str], app_token: str | None, users: Container[str] | None) -> Problem | None:
    """Give what is wrong with token or user; None for `app_token` or `users` takes any well-formed one."""
    token, user = fields.get("token", ""), fields.get("user", "")
    if not _KEY.fullmatch(token) or app_token not in {None, token}:
        return REFUSALS[Outcome.BAD_TOKEN]
    if not _KEY.fullmatch(user) or (users is not None and user not in users):
        return REFUSALS[Outcome.BAD_USER]
    return None


def problem_with_texts(fields: Mapping[str, str]) -> Problem | None:
    """Give what is wrong with the texts of a message: none at all, or one beyond its limit."""
    if not fields.get("message"):
        return REFUSALS[Outcome.NO_MESSAGE]
    too_long = [name for name, limit in _LIMITS.items() if len(fields.get(name, "")) > limit]
    return REFUSALS[_TOO_LONG[too_long[0]]] if too_long else None
