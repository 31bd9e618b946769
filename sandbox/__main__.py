"""Serve the stand-ins by hand: `python -m sandbox`, until Ctrl-C."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from sandbox.demo import Demo, start_demo
from sandbox.push_service import Message
from sandbox.server import utc_now


def main() -> int:
    """Serve booking site and push service; give 0 after Ctrl-C and 1 when a port or a folder cannot be had."""
    options = _options()
    stopped = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        stopped.set()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
        demo = start_demo(utc_now, host=options.host, site_port=options.site_port, push_port=options.push_port)
    except OSError as error:
        _say(f"cannot listen on {options.host}: {error}")
        return 1
    with demo:
        if options.recordings is not None:
            try:
                demo.site.serve_recordings(options.recordings, options.shift_years)
            except NotADirectoryError as error:
                _say(str(error))
                return 1
        demo.push.on_accept = _show
        _introduce(demo, options.recordings)
        stopped.wait()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s)")
    parser.add_argument(
        "--site-port", type=int, default=8001, help="booking site (default: %(default)s, 0: a free one)"
    )
    parser.add_argument(
        "--push-port", type=int, default=8002, help="push service (default: %(default)s, 0: a free one)"
    )
    parser.add_argument("--recordings", type=Path, metavar="DIR", help="a folder of recorded bodies to serve as well")
    parser.add_argument("--shift-years", type=int, default=0, metavar="N", help="move recorded nights N years ahead")
    return parser.parse_args()


def _introduce(demo: Demo, recordings: Path | None) -> None:
    _say(f"booking site  {demo.site_url}  campgrounds 900001, 900002, 900003")
    if recordings is not None:
        _say(f"              recordings from {recordings}")
    _say(f"push service  {demo.push_url}  token {demo.app_token}  user {demo.user_key}")
    _say(f"{demo.campground_name} ({demo.campground_id}) opens in 20 s; scan {demo.start} to {demo.end}. Ctrl-C stops.")


def _show(message: Message) -> None:
    _say(f"push accepted  {message.title} | {message.message} | {message.url}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
