"""What every channel must do, over real HTTP; a new one adds a driver and nothing else."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Protocol

import httpx
import pytest
from hypothesis import given, strategies as st
from pydantic import SecretStr

from chalicelib import wiring
from chalicelib.channels.contract import Channel, Message, RecipientError
from chalicelib.channels.outcomes import DeliveryErrorCategory, OutcomeClass
from chalicelib.channels.pushover import Pushover, PushoverConfig
from sandbox.push_service import PushService
from sandbox.wire import Answer, Cut
from tests.support.standins import make_settings

NOW = datetime(2030, 6, 10, 12, tzinfo=UTC)
MESSAGE = Message("Upper Pines", ("044: Fri 3 Sep → Mon 6 Sep, 3 nights",), "Open now", "Seen at 12:00")


class Driver(Protocol):
    """A channel beside its stand-in."""

    kind: str
    recipient: str
    secrets: list[str]

    def channel(self, *, configured: bool = True) -> Channel: ...

    def answer(self, answer: Answer) -> None: ...

    def count(self) -> int: ...

    def accepted(self) -> list[str]: ...


class PushoverDriver:
    kind = "pushover"
    recipient = "u" * 30

    def __init__(self, stack: ExitStack) -> None:
        self.secrets = ["a" * 30, "u" * 30]
        self._push = stack.enter_context(PushService("a" * 30, ["u" * 30], now=lambda: NOW))
        self._client = stack.enter_context(httpx.Client(trust_env=False, verify=False))

    def channel(self, *, configured: bool = True) -> Channel:
        token = SecretStr("a" * 30) if configured else None
        return Pushover(self._client, PushoverConfig(base_url=self._push.url, app_token=token, timeout_seconds=5))

    def answer(self, answer: Answer) -> None:
        self._push.script([answer])

    def count(self) -> int:
        return len(self._push.attempts)

    def accepted(self) -> list[str]:
        return [message.request for message in self._push.messages]


DRIVERS: dict[str, Callable[[ExitStack], Driver]] = {"pushover": PushoverDriver}


@pytest.fixture(params=sorted(DRIVERS))
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with ExitStack() as stack:
        yield DRIVERS[request.param](stack)


def test_every_registered_channel_has_a_driver_here() -> None:
    with ExitStack() as stack:
        assert set(DRIVERS) == set(wiring.channels(make_settings({}), stack))


def test_a_channel_is_registered_under_its_own_kind(driver: Driver) -> None:
    info = driver.channel().info
    assert info.kind == driver.kind
    assert info.name


def test_an_accepted_message_has_the_id_that_the_upstream_gave(driver: Driver) -> None:
    outcome = driver.channel().send(driver.recipient, MESSAGE, NOW)
    assert outcome.kind is OutcomeClass.ACCEPTED
    assert (outcome.category, outcome.retry_at, outcome.parks) == (None, None, False)
    assert [outcome.message_id] == driver.accepted()


def test_a_good_recipient_is_kept_without_its_blanks(driver: Driver) -> None:
    assert driver.channel().check_recipient(f" {driver.recipient}\n") == driver.recipient


@pytest.mark.parametrize("recipient", ["", " ", "x\x00y", "!" * 30])
def test_a_bad_recipient_is_refused_without_being_repeated(driver: Driver, recipient: str) -> None:
    with pytest.raises(RecipientError) as caught:
        driver.channel().check_recipient(recipient)
    assert not recipient.strip() or recipient not in str(caught.value)
    assert driver.count() == 0


def test_a_channel_without_its_credentials_says_so_and_asks_nobody(driver: Driver) -> None:
    channel = driver.channel(configured=False)
    assert not channel.configured
    assert driver.channel().configured
    outcome = channel.send(driver.recipient, MESSAGE, NOW)
    assert (outcome.kind, outcome.parks) == (OutcomeClass.PERMANENT, True)
    assert driver.count() == 0


@pytest.mark.parametrize(
    "status", [200, 201, 202, 204, 301, 302, 307, 308, 400, 401, 403, 404, 408, 410, 413, 425, 429]
)
@pytest.mark.parametrize("body", [b"", b"ok", b"{}", b"[]", b"null", b"<html>", b"\xff", b'{"status": 1'])
def test_no_answer_without_proof_is_an_acceptance(driver: Driver, status: int, body: bytes) -> None:
    driver.answer(Answer(status, body if status != 204 else b"", {"Location": "/1/messages.json"}))
    outcome = driver.channel().send(driver.recipient, MESSAGE, NOW)
    assert outcome.kind is not OutcomeClass.ACCEPTED
    assert outcome.category in DeliveryErrorCategory
    assert outcome.message_id is None
    assert driver.count() == 1  # one attempt is one request: nothing is repeated or followed


@pytest.mark.parametrize("cut", [cut for cut in Cut if cut is not Cut.NOT], ids=lambda cut: cut.name)
def test_a_lost_answer_is_ambiguous(driver: Driver, cut: Cut) -> None:
    driver.answer(Answer(200, b'{"status":1,"request":"x"}', cut=cut))
    outcome = driver.channel().send(driver.recipient, MESSAGE, NOW)
    assert (outcome.kind, outcome.category) == (OutcomeClass.AMBIGUOUS, DeliveryErrorCategory.TRANSPORT_ERROR)
    assert driver.count() == 1


def test_a_good_answer_follows_trouble(driver: Driver) -> None:
    channel = driver.channel()
    driver.answer(Answer(500, b"x", cut=Cut.MIDWAY))
    assert channel.send(driver.recipient, MESSAGE, NOW).kind is OutcomeClass.AMBIGUOUS
    assert channel.send(driver.recipient, MESSAGE, NOW).kind is OutcomeClass.ACCEPTED


def test_nothing_secret_is_logged(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    channel = driver.channel()
    for answer in (None, Answer(400, b'{"status":0}'), Answer(cut=Cut.RESET)):
        if answer:
            driver.answer(answer)
        outcome = channel.send(driver.recipient, MESSAGE, NOW)
        assert not any(secret in f"{outcome!r}{channel!r}" for secret in driver.secrets)
    assert not any(secret in caplog.text for secret in driver.secrets)
    assert "Upper Pines" not in caplog.text


texts = st.text(st.characters(), max_size=400)


@given(
    message=st.builds(
        Message,
        title=texts,
        items=st.lists(texts, max_size=40).map(tuple),
        intro=texts,
        note=texts,
        url=st.none() | texts.map("https://example.org/".__add__),
        url_title=st.none() | texts,
    )
)
def test_every_message_is_within_the_limits_of_the_upstream(message: Message) -> None:
    with ExitStack() as stack:
        driver = PushoverDriver(stack)
        assert driver.channel().send(driver.recipient, message, NOW).kind is OutcomeClass.ACCEPTED
