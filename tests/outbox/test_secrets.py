"""A23: what is secret is in no row in clear, in no log, result or history; and what is not ours to quote neither."""

import io
import json
import logging
from collections.abc import Generator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import text

from chalicelib import wiring
from chalicelib.channels.contract import Message
from chalicelib.channels.outcomes import Outcome
from chalicelib.db.tables import metadata, scan_results
from chalicelib.db.vault import Vault, new_key
from chalicelib.runtime.logs import ForPeople, JsonLines
from sandbox.push_rules import Outcome as Push
from tests.outbox.camp import Camp, july
from tests.support.live import APP_TOKEN, Live
from tests.support.standins import StandInChannel

RECIPIENT = "uPlantedRecipientKey0123456789"
VAULT_KEY = new_key()
QUOTED = "a text that an exception quotes"
ADDRESS = "ann.planted@example.org"
SECRETS = (RECIPIENT, APP_TOKEN, VAULT_KEY)


@pytest.fixture
def logs() -> Generator[list[io.StringIO]]:
    """Everything that is logged, as each of the two formats writes it."""
    root, streams = logging.getLogger(), [io.StringIO(), io.StringIO()]
    handlers = [logging.StreamHandler(stream) for stream in streams]
    before = root.level
    for handler, formatter in zip(handlers, (ForPeople(), JsonLines()), strict=True):
        handler.setFormatter(formatter)
        root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield streams
    root.setLevel(before)
    for handler in handlers:
        root.removeHandler(handler)


def _everything_stored(camp: Camp) -> dict[str, str]:
    with camp.deps.database.reading() as connection:
        return {
            table.name: " ".join(str(tuple(row)) for row in connection.execute(text(f"SELECT * FROM {table.name}")))
            for table in metadata.sorted_tables
        }


class Quoting(StandInChannel):
    """An adapter whose fault quotes what it was given."""

    def send(self, recipient: str, message: Message, now: datetime) -> Outcome:
        raise RuntimeError(f"{QUOTED}: {recipient} {message}")


REPLIES = [Push.ACCEPT, Push.BAD_USER, Push.ERROR, Push.TRUNCATED, Push.RESET, Push.BAD_TOKEN]


@pytest.mark.parametrize("reply", REPLIES)
def test_whatever_pushover_answers_no_secret_comes_to_light(
    live: Live, push_camp: Camp, logs: list[io.StringIO], reply: Push
) -> None:
    object.__setattr__(live.deps, "vault", Vault([VAULT_KEY]))
    push_camp.true_alert(ADDRESS, RECIPIENT)
    live.push.script([reply])
    result = wiring.run("drain", live.deps, 120)
    assert live.push.attempts[0].fields["user"] == RECIPIENT  # it was really used
    assert live.push.attempts[0].fields["token"] == APP_TOKEN
    told = [*(stream.getvalue() for stream in logs), json.dumps(result.to_json()), repr(result)]
    told += [json.dumps(attempt.to_json()) for attempt in live.deps.runtime.attempts()]
    for secret in SECRETS:
        assert not [table for table, content in _everything_stored(push_camp).items() if secret in content]
        assert not [text for text in told if secret in text]
    assert not [text for text in told if ADDRESS in text]
    assert logs[0].getvalue()


def test_an_adapters_fault_is_logged_without_what_it_says(camp: Camp, logs: list[io.StringIO]) -> None:
    camp = camp.with_channels(pushover=Quoting())
    camp.true_alert(ADDRESS, RECIPIENT)
    result = camp.drain()
    for stream in logs:
        assert "RuntimeError" in stream.getvalue()
        assert QUOTED not in stream.getvalue()
        assert RECIPIENT not in stream.getvalue()
    _holds_nothing_of(camp, result.to_json(), QUOTED, RECIPIENT)


def test_a_broken_rows_fault_is_logged_without_what_it_says(camp: Camp, logs: list[io.StringIO]) -> None:
    row_id = camp.true_alert(ADDRESS, RECIPIENT)
    camp.change(scan_results, nights={QUOTED: QUOTED})
    result = camp.drain()
    for stream in logs:
        assert str(row_id)[:8] in stream.getvalue()
        assert QUOTED not in stream.getvalue()
    assert camp.ended() == ("retry", "internal_error")
    assert QUOTED not in json.dumps(result.to_json())


def test_a_payload_that_cannot_be_read_is_quoted_nowhere(camp: Camp, logs: list[io.StringIO]) -> None:
    camp.true_alert(payload=camp.payload({"101": july(10)}) | {"start_date": QUOTED})
    result = camp.drain()
    assert camp.ended() == ("failed", "malformed_payload")
    assert QUOTED not in json.dumps(result.to_json())
    assert not [stream for stream in logs if QUOTED in stream.getvalue()]
    assert QUOTED not in str(dict(camp.story()))


def test_a_storage_fault_is_logged_without_what_was_stored(camp: Camp, logs: list[io.StringIO]) -> None:
    camp.true_alert(ADDRESS, RECIPIENT)
    _rename(camp, "alert_history", "lost")
    try:
        result = camp.drain()
    finally:
        _rename(camp, "lost", "alert_history")
    assert result.outcome == "error"
    for stream in logs:
        assert "the storage failed" in stream.getvalue()
        assert RECIPIENT not in stream.getvalue()
        assert "alert_history" not in stream.getvalue()  # an exception's text is not ours to quote


def test_a_claim_shows_its_recipient_to_nobody(camp: Camp) -> None:
    camp.true_alert(ADDRESS, RECIPIENT)
    claim = camp.claimed()
    assert claim.recipient == RECIPIENT
    for shown in (repr(claim), str(claim), repr(claim.in_trouble()), f"{claim!r:s}", repr(replace(claim, attempt=2))):
        assert RECIPIENT not in shown


def test_a_recipient_is_read_for_one_attempt_and_kept_nowhere(camp: Camp) -> None:
    camp.true_alert(ADDRESS, RECIPIENT)
    camp.claimed()
    assert not [table for table, content in _everything_stored(camp).items() if RECIPIENT in content]


def test_an_alert_holds_no_address(camp: Camp) -> None:
    camp.true_alert(ADDRESS, RECIPIENT)
    assert ADDRESS not in _everything_stored(camp)["notification_outbox"]
    assert RECIPIENT not in json.dumps(camp.row()["payload"])


def _holds_nothing_of(camp: Camp, result: Any, *texts: str) -> None:
    for stored in (json.dumps(result), *(_everything_stored(camp).values())):
        assert not [text for text in texts if text in stored]


def _rename(camp: Camp, table: str, name: str) -> None:
    with camp.deps.database.transaction() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO {name}")
