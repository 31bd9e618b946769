"""`python -m chalicelib …`: the command line."""

import io
import sys

from chalicelib.cli.main import cli


def main() -> None:
    """Run one command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without arrows still gets the words
    cli(prog_name="python -m chalicelib")


if __name__ == "__main__":
    main()
