"""Logs: readable, machine-readable, and silent about what an exception says."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from chalicelib.runtime import logs

SECRET = "u-planted-key"


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


def written(*, cloud: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    if cloud:
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "drain")
    stream = io.StringIO()
    logs.set_up(stream)
    log = logging.getLogger("chalicelib.test")
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(f"no {SECRET}") from error
    except ValueError:
        log.exception("an alert was not sent", extra={"outbox_id": "7"})
    return stream.getvalue()


@pytest.mark.parametrize("cloud", [True, False])
def test_an_exceptions_classes_are_told_and_its_text_is_not(
    root_logger: logging.Logger, monkeypatch: pytest.MonkeyPatch, cloud: bool
) -> None:
    text = written(cloud=cloud, monkeypatch=monkeypatch)
    assert SECRET not in text
    assert "ValueError" in text
    assert "KeyError" in text
    assert "test_logs.py" in text


def test_in_the_cloud_each_event_is_one_json_object_a_line(
    root_logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = written(cloud=True, monkeypatch=monkeypatch).splitlines()
    entry = json.loads(line)
    assert (entry["event"], entry["level"], entry["outbox_id"]) == ("an alert was not sent", "error", "7")
    assert entry["at"].endswith("Z")


def test_on_a_terminal_a_line_is_a_sentence_with_what_belongs_to_it(
    root_logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(cloud=False, monkeypatch=monkeypatch).splitlines()[0]
    assert first.endswith("error: an alert was not sent (outbox_id 7)")
