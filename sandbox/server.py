"""A small HTTP/1.1 server on loopback that can also answer late, in drips, halfway, or not at all."""

import socket
import socketserver
import struct
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from sandbox.wire import Answer, Cut, Request, html_answer

Clock = Callable[[], datetime]
"""Gives the present moment, with its zone."""


def utc_now() -> datetime:
    """Give the real present moment in UTC."""
    return datetime.now(UTC)


class StandIn(ABC):
    """A service on loopback that answers from its constructor's end until `close()`; usable as a context manager.

    A subclass sets up its own state first and calls this constructor last, since requests may come at once.
    """

    def __init__(self, *, now: Clock = utc_now, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen on `host` and `port` (0: a free one) and take the time from `now`."""
        self.now = now
        self.requests: list[Request] = []
        """Every request so far, in order of arrival; a test may clear it."""
        self.on_request: Callable[[Request], object] | None = None
        """Called in the answering thread after the request was read and before any byte of the answer leaves."""
        self.errors: list[Exception] = []
        """What went wrong in here, a hook that raised included; `close()` raises the first of them."""
        self._tally = _Tally()
        self._server = _Server(self, host, port)
        # The poll interval bounds how long close() waits for the accepting loop to notice.
        self._loop = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._loop.start()

    @property
    def url(self) -> str:
        """The origin that clients use, such as "http://127.0.0.1:49152", without a trailing slash."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def peak(self) -> int:
        """The largest number of requests that were in hand at the same time."""
        return self._tally.peak

    def close(self) -> None:
        """Stop listening and interrupt every open answer; safe to call twice; raises what went wrong in a hook."""
        self._shut()
        if self.errors:
            raise self.errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:  # an error of the block is worth more than one of ours
            self._shut()

    @abstractmethod
    def respond(self, request: Request) -> Answer:
        """Give the answer to one request; called from several threads at once."""

    def drops_unread(self) -> bool:
        """Say whether the request that is about to be read shall be dropped unread."""
        return False

    def handle(self, request: Request) -> Answer:
        """Log one request, call the hook and give the answer; an error in here becomes a 500 and is kept."""
        self.requests.append(request)
        try:
            if self.on_request is not None:
                self.on_request(request)
            return self.respond(request)
        except Exception as error:  # noqa: BLE001 - the outermost place: kept for close(), which raises it
            self.errors.append(error)
            return html_answer("Sandbox error", "The stand-in itself failed.", status=500)

    def _shut(self) -> None:
        self._server.stop()
        self._loop.join()


class _Tally:
    """Counts what is in hand, and remembers the most."""

    def __init__(self) -> None:
        self.peak = 0
        self._count = 0
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self._count += 1
            self.peak = max(self.peak, self._count)

    def leave(self) -> None:
        with self._lock:
            self._count -= 1


class _Server(ThreadingHTTPServer):
    """The listening socket and one thread a connection; every one of them ends with `stop()`."""

    daemon_threads = True  # a forgotten close() must not keep the interpreter alive
    request_queue_size = 128

    def __init__(self, stand_in: StandIn, host: str, port: int) -> None:
        self.stand_in = stand_in
        self.stopped = threading.Event()
        self._connections: set[socket.socket] = set()
        self._threads_by_us: set[threading.Thread] = set()
        self._lock = threading.Lock()
        super().__init__((host, port), _Handler)

    def stop(self) -> None:
        if self.stopped.is_set():
            return
        self.stopped.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            connections, threads = list(self._connections), list(self._threads_by_us)
        for connection in connections:
            _hang_up(connection)
        for thread in threads:
            # Five seconds concern only a hook that hangs; a thread of ours sees the event or the closed socket.
            if thread is not threading.current_thread():
                thread.join(timeout=5)

    def server_bind(self) -> None:
        # The inherited one asks the resolver for the host's full name, which can take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        me = threading.current_thread()
        with self._lock:
            self._threads_by_us.add(me)
            self._connections.add(request)
        if self.stopped.is_set():  # accepted while stop() made its list
            _hang_up(request)
        super().process_request_thread(request, client_address)
        with self._lock:
            self._threads_by_us.discard(me)
            self._connections.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as inherited
        """Stay quiet about connections that the client dropped; keep anything else for close()."""
        error = sys.exception()
        if isinstance(error, Exception) and not isinstance(error, OSError):
            self.stand_in.errors.append(error)


def _hang_up(connection: socket.socket) -> None:
    """Wake a thread that reads from or writes to this connection."""
    with suppress(OSError):  # it may be closed already
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """One connection; requests come one after the other (a client that pipelines is not served)."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def handle_one_request(self) -> None:
        # Peeking leaves the bytes with the kernel, so that a request can be dropped without being read.
        if not self.connection.recv(1, socket.MSG_PEEK):
            self.close_connection = True
        elif self.server.stand_in.drops_unread():
            self._reset()
        else:
            super().handle_one_request()

    def _serve(self) -> None:
        tally = self.server.stand_in._tally  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        with ExitStack() as in_hand:
            tally.enter()
            in_hand.callback(tally.leave)
            self._send(self.server.stand_in.handle(self._read()), in_hand)

    do_GET = do_POST = _serve  # noqa: N815 - the names that http.server looks for

    def _read(self) -> Request:
        path, _, query = self.path.partition("?")
        return Request(
            method=self.command,
            path=path,
            query=query,
            params=parse_qs(query, keep_blank_values=True),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
            at=self.server.stand_in.now(),
        )

    def _send(self, answer: Answer, in_hand: ExitStack) -> None:
        """Send the answer; a request is done just before its last byte leaves, or the client could be faster."""
        if answer.delay and self.server.stopped.wait(answer.delay):
            self.close_connection = True
            return
        whole = answer.head() + answer.body
        start = len(whole) - len(answer.body)
        if answer.cut is not Cut.NOT:
            in_hand.close()
            self.close_connection = True
            if answer.cut is Cut.RESET:
                self._reset()
            elif answer.cut is not Cut.BEFORE_HEADERS:
                end = start if answer.cut is Cut.AFTER_HEADERS else start + len(answer.body) // 2
                self.wfile.write(whole[:end])
        elif answer.drip:
            self._drip(whole, start, answer.drip, in_hand)
        else:
            in_hand.close()
            self.wfile.write(whole)

    def _drip(self, whole: bytes, start: int, seconds: float, in_hand: ExitStack) -> None:
        self.wfile.write(whole[:start])
        for at in range(start, len(whole)):
            if self.server.stopped.wait(seconds):
                self.close_connection = True
                return
            if at == len(whole) - 1:
                in_hand.close()
            self.wfile.write(whole[at : at + 1])

    def _reset(self) -> None:
        # No lingering: closing sends RST. Closing here keeps the server from saying goodbye (FIN) first.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the inherited name
        """Stay quiet: `requests` is the log."""
