"""Limits around a network call: a total time (those of HTTP clients are per phase), and a size."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


class DeadlinePassed(Exception):
    """The time allowed is over."""


class BodyTooLarge(Exception):
    """More came than is allowed."""


def begin(work: Callable[[], T]) -> Future[T]:
    """Start `work` in a thread that may be walked away from: a daemon, which the end of the process does not await."""
    end = Future[T]()

    def run() -> None:
        try:
            end.set_result(work())
        except BaseException as error:  # noqa: BLE001  # it is raised again where somebody asks for the result
            end.set_exception(error)

    Thread(target=run, name="begun", daemon=True).start()
    return end


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises.

    Raises DeadlinePassed after `seconds`, whatever the work waits for (a name's look-up has no limit of its own). It is
    left to itself then, and its result is dropped.
    """
    end = begin(work)
    if not wait([end], max(seconds, 0)).done:
        raise DeadlinePassed
    return end.result()


def gather(chunks: Iterable[bytes], *, until: float, most: int) -> bytes:
    """Join a body that comes in pieces; `until` is by `time.monotonic()`.

    Raises DeadlinePassed or BodyTooLarge as soon as a piece shows it: a server that drips never ends by itself.
    """
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > most:
            raise BodyTooLarge
        if time.monotonic() > until:
            raise DeadlinePassed
    return bytes(body)
