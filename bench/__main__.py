"""`python -m bench [name…]`: run benchmarks and print one table."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping

from bench import check, drain, start
from bench.databases import databases
from bench.table import Line, printed
from chalicelib.runtime import logs

BENCHES: Mapping[str, Callable[[Mapping[str, str]], list[Line]]] = {
    "drain": drain.measure,
    "check": check.measure,
    "start": start.measure,
}


def main() -> int:
    """Run what was named, or everything; 1 when `--check` was asked for and an aim was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks beside their bare baselines.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHES)}; none means all")
    parser.add_argument("--check", action="store_true", help="end with 1 when an aim is missed")
    parser.add_argument("--imports", action="store_true", help="also list the imports that `start` spends most on")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - BENCHES.keys())
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}")
    lines: list[Line] = []
    with open(os.devnull, "w", encoding="utf-8") as nowhere, databases() as urls:  # noqa: PTH123 - a device
        logs.set_up(nowhere)  # logging is part of the work
        for name in given.names or BENCHES:
            began = time.monotonic()
            lines += BENCHES[name](urls)
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(printed(lines))
    if given.imports:
        print("", start.largest_imports(), sep="\n")
    return int(given.check and not all(line.met for line in lines))


if __name__ == "__main__":
    sys.exit(main())
