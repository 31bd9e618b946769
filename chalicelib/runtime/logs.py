"""Logs: a JSON object a line in the cloud, words on a terminal; never an exception's text, which may quote data."""

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

from chalicelib.history import iso
from chalicelib.settings import in_the_cloud

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up(stream: TextIO = sys.stderr) -> None:
    """Send all logs to the stream (standard output belongs to results), in the format that fits the place."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if in_the_cloud() else ForPeople())
    root = logging.getLogger()
    for old in list(root.handlers):  # a cloud's runtime brings its own, which would print every line twice
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in ("httpx", "httpcore", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


class JsonLines(logging.Formatter):
    """One object a line: time, level, event, and what the caller added."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "at": iso(_moment(record)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_added(record),
        }
        if record.exc_info:
            entry["error"] = _error(record.exc_info)
        return json.dumps(entry, default=str)


class ForPeople(logging.Formatter):
    """`10:32:05 a short sentence (what the caller added)`."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        added = ", ".join(f"{key} {_short(value)}" for key, value in _added(record).items() if value is not None)
        error = f"\n{_error(record.exc_info)}" if record.exc_info else ""
        return f"{_moment(record):%H:%M:%S} {level}{record.getMessage()}{f' ({added})' if added else ''}{error}"


def _short(value: Any) -> str:
    """Ids by their first part, which tells them apart on a screen."""
    text = str(value)
    return text[:8] if _UUID.fullmatch(text) else text


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _added(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _error(exc_info: ExcInfo) -> str:
    """The classes of an exception and its causes, and where it came from: everything but what it says."""
    error = exc_info[1]
    parts: list[str] = []
    while error is not None:
        frames = [
            f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ]
        parts.append("\n".join([type(error).__qualname__, *frames]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(parts)
