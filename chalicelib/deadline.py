"""Limits around a network call: a total time (those of HTTP clients are per phase), and a size."""

import time
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


class DeadlinePassed(Exception):
    """The time allowed is over."""


class BodyTooLarge(Exception):
    """More came than is allowed."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """Run `work` in a thread of its own and return what it returns or raise what it raises.

    Raises DeadlinePassed after `seconds`, whatever the work waits for (a name's look-up has no limit of its own). The
    thread is left to itself then, and its result is dropped; being a daemon it does not keep the process alive.
    """
    ends: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            ends.put((work(),))
        except BaseException as error:  # noqa: BLE001 - it is raised again where the caller waits
            ends.put(error)

    Thread(target=run, name="within", daemon=True).start()
    try:
        end = ends.get(timeout=max(seconds, 0))
    except Empty:
        raise DeadlinePassed from None
    if isinstance(end, BaseException):
        raise end
    return end[0]


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
