"""`python -m chalicelib …`: the command line, its logs on standard error."""

import io
import logging
import sys
import time

from chalicelib.cli.main import cli


def main() -> None:
    """Run one command."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Utc("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("chalicelib").setLevel(logging.INFO)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without arrows still gets the words
    cli(prog_name="python -m chalicelib")


class _Utc(logging.Formatter):
    converter = time.gmtime


if __name__ == "__main__":
    main()
