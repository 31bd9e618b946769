"""An instant booking site for benchmarks: bodies made beforehand, served by a process of its own."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection
from urllib.parse import unquote, urlsplit


@contextmanager
def instant_site(bodies: Mapping[str, bytes]) -> Generator[str]:
    """Serve these bodies of months by campground id; gives the origin. Nobody's metadata is known."""
    context = get_context("spawn")  # a process that shares nothing: its time is not the measured one's
    ours, its = context.Pipe()
    process = context.Process(target=_serve, args=(its, dict(bodies)), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, bodies: Mapping[str, bytes]) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # the connection is kept
        wbufsize = -1  # head and body go out in one write
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).split("/")
            body = bodies[path[-2]] if path[-1] == "month" else b'{"size":0,"start":"0","total":0}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        pipe.send(server.server_address[1])
        server.serve_forever()
