import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from sandbox.push_rules import Outcome, Reply
from sandbox.push_service import MESSAGES, VALIDATE, Message, PushService
from sandbox.wire import Answer, Request
from tests.sandbox.conftest import MovingClock, client as new_client

TOKEN = "a" * 30
USER = "u" * 30
GOOD = {"token": TOKEN, "user": USER, "message": "A site is open"}


@pytest.fixture
def push(clock: MovingClock) -> Iterator[PushService]:
    with PushService(TOKEN, [USER], now=clock) as push:
        yield push


@pytest.fixture
def client(push: PushService) -> Iterator[httpx.Client]:
    with new_client(push.url) as client:
        yield client


def test_a_good_message_is_accepted_with_an_id_and_kept_whole(
    push: PushService, client: httpx.Client, clock: MovingClock
) -> None:
    more = {"title": "Heron Bend", "url": "https://example.org/1", "url_title": "Book", "html": "1"}
    answer = client.post(MESSAGES, data=GOOD | more)
    assert answer.status_code == 200
    assert answer.json()["status"] == 1
    [message] = push.messages
    assert message == Message(
        request=answer.json()["request"],
        token=TOKEN,
        user=USER,
        message="A site is open",
        title="Heron Bend",
        url="https://example.org/1",
        url_title="Book",
        html=True,
        at=clock(),
    )


def test_each_acceptance_tells_what_is_left_of_the_quota_and_when_it_ends(client: httpx.Client) -> None:
    headers = [client.post(MESSAGES, data=GOOD).headers for _ in range(2)]
    assert [header["x-limit-app-limit"] for header in headers] == ["10000", "10000"]
    assert [header["x-limit-app-remaining"] for header in headers] == ["9999", "9998"]
    assert int(headers[0]["x-limit-app-reset"]) == datetime(2030, 7, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"token": "short"}, "token"),
        ({"token": "b" * 30}, "token"),
        ({"user": "u" * 29 + "-"}, "user"),
        ({"user": "v" * 30}, "user"),
        ({"message": ""}, "message"),
        ({"message": "x" * 1025}, "message"),
        ({"title": "x" * 251}, "title"),
        ({"url": "x" * 513}, "url"),
        ({"url_title": "x" * 101}, "url_title"),
    ],
)
def test_a_bad_message_is_refused_with_the_field_named(
    push: PushService, client: httpx.Client, change: dict[str, str], field: str
) -> None:
    answer = client.post(MESSAGES, data=GOOD | change)
    body = answer.json()
    assert answer.status_code == 400
    assert body["status"] == 0
    assert field in body
    assert body["errors"]
    assert body["request"]
    assert push.messages == []
    assert [attempt.status for attempt in push.attempts] == [400]


def test_texts_at_their_limits_are_accepted_counted_in_characters(client: httpx.Client) -> None:
    texts = {"message": "ü" * 1024, "title": "→" * 250, "url": "x" * 512, "url_title": "x" * 100}
    assert client.post(MESSAGES, data=GOOD | texts).status_code == 200


def test_without_known_keys_any_well_formed_one_is_taken() -> None:
    with PushService() as push, new_client(push.url) as client:
        assert client.post(MESSAGES, data=GOOD).status_code == 200
        assert client.post(MESSAGES, data=GOOD | {"token": "ä" * 30}).status_code == 400


def test_only_forms_are_read(client: httpx.Client) -> None:
    assert client.post(MESSAGES, json=GOOD).status_code == 400
    assert client.post(MESSAGES, params=GOOD).status_code == 400


def test_other_paths_and_methods_are_not_found(client: httpx.Client) -> None:
    assert client.get(MESSAGES).status_code == 404
    assert client.post("/2/messages.json", data=GOOD).status_code == 404


def test_keys_are_validated(client: httpx.Client) -> None:
    good = client.post(VALIDATE, data={"token": TOKEN, "user": USER})
    assert (good.status_code, good.json()["status"]) == (200, 1)
    bad = client.post(VALIDATE, data={"token": TOKEN, "user": "v" * 30})
    assert (bad.status_code, bad.json()["user"]) == (400, "invalid")


def test_an_emptied_quota_refuses_until_its_reset(clock: MovingClock) -> None:
    with PushService(now=clock, quota=1) as push, new_client(push.url) as client:
        assert client.post(MESSAGES, data=GOOD).headers["x-limit-app-remaining"] == "0"
        refused = client.post(MESSAGES, data=GOOD)
        assert refused.status_code == 429
        assert int(refused.headers["x-limit-app-reset"]) > clock().timestamp()
        assert len(push.messages) == 1


ANSWERED = {
    Outcome.ACCEPT: (200, True),
    Outcome.BAD_TOKEN: (400, False),
    Outcome.BAD_USER: (400, False),
    Outcome.NO_MESSAGE: (400, False),
    Outcome.MESSAGE_TOO_LONG: (400, False),
    Outcome.TITLE_TOO_LONG: (400, False),
    Outcome.URL_TOO_LONG: (400, False),
    Outcome.URL_TITLE_TOO_LONG: (400, False),
    Outcome.QUOTA: (429, False),
    Outcome.BUSY: (429, False),
    Outcome.ERROR: (500, False),
    Outcome.UNAVAILABLE: (503, False),
    Outcome.REDIRECT: (302, False),
    Outcome.REQUEST_TIMEOUT: (408, False),
    Outcome.STATUS_ZERO: (200, False),
    Outcome.PAGE: (200, False),
    Outcome.EMPTY_OBJECT: (200, False),
    Outcome.NO_ID: (200, False),
    Outcome.TRUNCATED: (200, False),
    Outcome.SLOW: (200, True),
    Outcome.DRIP: (200, True),
}
LOST = {
    Outcome.ACCEPT_THEN_DROP: True,
    Outcome.ACCEPT_THEN_RESET: True,
    Outcome.DROP_BEFORE_READING: False,
    Outcome.DROP: False,
    Outcome.RESET: False,
}


def test_the_two_tables_name_every_outcome() -> None:
    assert ANSWERED.keys() | LOST.keys() == set(Outcome)


@pytest.mark.parametrize("outcome", ANSWERED)
def test_a_scripted_answer_comes_once_and_the_next_message_is_accepted(
    push: PushService, client: httpx.Client, outcome: Outcome
) -> None:
    push.script([Reply(outcome, seconds=0.0005)])
    status, accepted = ANSWERED[outcome]
    answer = client.post(MESSAGES, data=GOOD)
    assert answer.status_code == status
    assert [(attempt.status, attempt.accepted) for attempt in push.attempts] == [(status, accepted)]
    assert len(push.messages) == accepted
    assert client.post(MESSAGES, data=GOOD).status_code == 200


@pytest.mark.parametrize("outcome", LOST)
def test_a_lost_connection_tells_the_client_nothing_of_whether_the_message_was_accepted(
    push: PushService, client: httpx.Client, outcome: Outcome
) -> None:
    client.post(MESSAGES, data=GOOD)  # so that the connection is warm, which hides where it breaks
    push.script([outcome])
    with pytest.raises(httpx.TransportError):
        client.post(MESSAGES, data=GOOD)
    assert len(push.messages) == 1 + LOST[outcome]
    assert (push.attempts[-1].status, push.attempts[-1].accepted) == (None, LOST[outcome])
    assert client.post(MESSAGES, data=GOOD).status_code == 200


def test_a_request_dropped_unread_leaves_no_trace_but_the_attempt(push: PushService, client: httpx.Client) -> None:
    push.script([Outcome.DROP_BEFORE_READING])
    with pytest.raises(httpx.TransportError):
        client.post(MESSAGES, data=GOOD)
    assert push.requests == []
    assert [attempt.fields for attempt in push.attempts] == [{}]


def test_hints_to_wait_stand_in_the_headers(push: PushService, client: httpx.Client) -> None:
    reset = datetime(2030, 6, 20, tzinfo=UTC)
    push.script([Outcome.BUSY, Reply(Outcome.UNAVAILABLE, retry_after=7), Reply(Outcome.QUOTA, reset=reset)])
    busy, unavailable, quota = (client.post(MESSAGES, data=GOOD).headers for _ in range(3))
    assert (busy["retry-after"], unavailable["retry-after"]) == ("30", "7")
    assert int(quota["x-limit-app-reset"]) == reset.timestamp()
    assert quota["x-limit-app-remaining"] == "0"
    assert "retry-after" not in quota


def test_a_scripted_acceptance_still_refuses_what_is_invalid(push: PushService, client: httpx.Client) -> None:
    push.script([Outcome.ACCEPT_THEN_DROP])
    assert client.post(MESSAGES, data=GOOD | {"message": ""}).status_code == 400
    assert push.messages == []


def test_any_answer_at_all_can_be_scripted_for_messages_and_for_validation(
    push: PushService, client: httpx.Client
) -> None:
    push.script([Answer(418, b"short and stout")])
    push.script([Outcome.ERROR], on=VALIDATE)
    assert client.post(MESSAGES, data=GOOD).status_code == 418
    assert client.post(VALIDATE, data=GOOD).status_code == 500
    assert client.post(VALIDATE, data=GOOD).status_code == 200


def test_hooks_see_each_request_and_each_accepted_message(push: PushService, client: httpx.Client) -> None:
    requests: list[Request] = []
    accepted: list[Message] = []
    push.on_request, push.on_accept = requests.append, accepted.append
    client.post(MESSAGES, data=GOOD)
    client.post(MESSAGES, data=GOOD | {"user": "nobody"})
    assert [request.path for request in requests] == [MESSAGES, MESSAGES]
    assert accepted == push.messages


def test_the_peak_is_the_most_requests_in_hand_at_once(push: PushService) -> None:
    assert push.peak == 0
    together = threading.Barrier(3)
    push.on_request = lambda _: together.wait(timeout=5)

    def send() -> None:
        with new_client(push.url) as client:
            assert client.post(MESSAGES, data=GOOD).status_code == 200

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert push.peak == 3


def test_requests_one_after_the_other_have_a_peak_of_one(push: PushService, client: httpx.Client) -> None:
    push.script([Reply(Outcome.DRIP, seconds=0.0002)] * 3)
    for _ in range(20):
        client.post(MESSAGES, data=GOOD)
    assert push.peak == 1
