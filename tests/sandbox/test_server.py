import http.client
import threading
import time

import httpx
import pytest

from sandbox.booking_site import BookingSite
from sandbox.campgrounds import Campground
from sandbox.faults import Fault
from sandbox.push_rules import Outcome, Reply
from sandbox.push_service import MESSAGES, PushService
from sandbox.wire import Request
from tests.sandbox.conftest import client

HEADERS = {"User-Agent": "tests"}
PATH = "/api/camps/campgrounds/900"


@pytest.mark.parametrize("fault", [Fault.SLOW, Fault.DRIP])
def test_closing_interrupts_an_answer_that_would_take_minutes(fault: Fault) -> None:
    site = BookingSite()
    site.add_campground(Campground("900", "Heron Bend"))
    site.misbehave(fault, seconds=60)
    asked = threading.Event()
    site.on_request = lambda _: asked.set()
    failures: list[Exception] = []

    def visit() -> None:
        try:
            with client() as visitor:
                visitor.get(site.url + PATH, timeout=30)
        except httpx.TransportError as error:
            failures.append(error)

    thread = threading.Thread(target=visit)
    thread.start()
    assert asked.wait(timeout=5)
    start = time.monotonic()
    site.close()
    thread.join(timeout=5)
    assert time.monotonic() - start < 2
    assert len(failures) == 1


def test_closing_does_not_wait_for_idle_connections_and_leaves_no_threads() -> None:
    before = set(threading.enumerate())
    with client() as visitor:
        with BookingSite() as site, PushService() as push:
            visitor.get(site.url + PATH)
            visitor.post(push.url + MESSAGES)
            assert len(set(threading.enumerate()) - before) >= 4
            start = time.monotonic()
        assert time.monotonic() - start < 2
    assert not [thread for thread in set(threading.enumerate()) - before if "process_request" in thread.name]


def test_closing_twice_does_no_harm_and_nobody_answers_any_more() -> None:
    site = BookingSite()
    site.close()
    site.close()
    with client() as visitor, pytest.raises(httpx.ConnectError):
        visitor.get(site.url)


def test_a_connection_is_kept_for_the_next_request() -> None:
    with BookingSite() as site:
        connection = http.client.HTTPConnection(site.url.removeprefix("http://"))
        connection.request("GET", PATH, headers=HEADERS)
        connection.getresponse().read()
        before = connection.sock
        connection.request("GET", PATH, headers=HEADERS)
        connection.getresponse().read()
        assert connection.sock is before is not None
        connection.close()


def test_what_a_hook_raises_becomes_a_500_and_is_raised_by_closing() -> None:
    def look(_: Request) -> None:
        raise AssertionError("a transaction is open")

    site = BookingSite()
    site.on_request = look
    with client() as visitor:
        assert visitor.get(site.url + PATH).status_code == 500
    with pytest.raises(AssertionError, match="a transaction is open"):
        site.close()


def test_an_error_of_the_block_is_not_hidden_by_one_of_a_hook() -> None:
    def look(_: Request) -> None:
        raise AssertionError("a transaction is open")

    def visit() -> None:
        with PushService() as push, client() as sender:
            push.on_request = look
            sender.post(push.url + MESSAGES)
            raise KeyError("the block's own")

    with pytest.raises(KeyError, match="the block's own"):
        visit()


def test_a_client_that_leaves_in_the_middle_leaves_no_error() -> None:
    form = {"token": "a" * 30, "user": "u" * 30, "message": "hello"}
    with PushService() as push:
        push.script([Reply(Outcome.DRIP, seconds=0.01)])
        with client(push.url) as leaving, leaving.stream("POST", MESSAGES, data=form) as answer:
            assert answer.status_code == 200
        with client(push.url) as staying:
            assert staying.post(MESSAGES, data=form).status_code == 200
    assert push.errors == []
