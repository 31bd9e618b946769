"""CPU time of imports in fresh interpreters, beside the bare imports of the libraries that cannot be avoided.

`app`: what `import app` loads. A function's: everything that is loaded from the interpreter's start to its first
result, found by running it once (PostgreSQL, one due target, one due alert, an upstream that refuses the connection)
and then imported in the same order without being run.
"""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from tempfile import gettempdir

from bench.rows import fill
from bench.table import Aim, Line, ratio_of
from chalicelib.db.engine import Database
from chalicelib.db.vault import Vault, new_key

AIM = Aim(1.2, least=False)
ROUNDS = 5
ROOT = Path(__file__).resolve().parents[1]

APP = ("chalice.app", "sqlalchemy", "pydantic", "pydantic_settings", "cryptography.fernet")
"""What `app` needs before it knows what it will be asked: routes, tables and the engine, settings, the vault."""

PRUNE = (*APP, "pg8000")
WHOLE = (*PRUNE, "httpx")
FUNCTIONS: Mapping[str, Sequence[str]] = {"drain": WHOLE, "detect": WHOLE, "prune": PRUNE}

IMPORT = """
    import importlib, json, sys, time
    names = json.load(sys.stdin)
    began = time.process_time()
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:  # made by its parent, and not to be found by itself
            pass
    print(time.process_time() - began)
"""
RUN = """
    import json, sys
    before = set(sys.modules)
    import app

    class Context:
        def get_remaining_time_in_millis(self):
            return 60_000
    keys = ("version", "account", "region", "detail", "detail-type", "source", "time", "id", "resources")
    result = getattr(app, sys.argv[1])(dict.fromkeys(keys), Context())
    loaded = [name for name in sys.modules if name not in before]
    print(json.dumps([result["outcome"], result["counts"], loaded]))
"""


def measure(urls: Mapping[str, str]) -> list[Line]:
    """The app, then each scheduled function."""
    cases = {"app": (("app",), APP)}
    cases |= {job: (loaded, FUNCTIONS[job]) for job, loaded in _loaded(urls["PostgreSQL"]).items()}
    lines: list[Line] = []
    for what, (names, libraries) in cases.items():
        measured: list[float] = []
        bare: list[float] = []
        for number in range(ROUNDS + 1):
            both = _import_seconds(names), _import_seconds(libraries)
            if number:  # the first finds the files and compiles what has changed
                measured.append(both[0])
                bare.append(both[1])
        lines.append(
            Line(
                f"imports, {what}",
                f"{1000 * median(measured):.0f} ms CPU",
                f"{1000 * median(bare):.0f} ms CPU",
                ratio_of(measured, bare),
                AIM,
            )
        )
    return lines


def largest_imports(count: int = 25) -> str:
    """The modules of `import app` that cost most by themselves, as `python -X importtime` tells."""
    told = _python("import app", options=("-X", "importtime")).stderr.splitlines()
    rows = [line.removeprefix("import time:").split("|") for line in told if line.startswith("import time:")]
    costs = sorted(((int(own), int(all_), name.strip()) for own, all_, name in rows[1:]), reverse=True)
    return "\n".join(
        ["  own ms  with its own  module"] + [f"{o / 1000:8.1f}  {a / 1000:12.1f}  {n}" for o, a, n in costs[:count]]
    )


def _import_seconds(names: Sequence[str]) -> float:
    return float(_python(IMPORT, given=json.dumps(list(names))).stdout)


def _loaded(url: str) -> dict[str, list[str]]:
    """What each function loads until its first result, by its name."""
    key = new_key()
    with closing(Database(url)) as database:
        fill(database, Vault([key]), 1).put_back()
    environment = {
        "SITEBELL_DATABASE_URL": url,
        "SITEBELL_SECRET_KEYS": key,
        "SITEBELL_CHECK_INTERVAL": "0",
        "SITEBELL_RECREATION_GOV_URL": "http://127.0.0.1:1",
        "SITEBELL_PUSHOVER_URL": "http://127.0.0.1:1",
        "SITEBELL_PUSHOVER_APP_TOKEN": "a" * 30,
    }
    loaded: dict[str, list[str]] = {}
    for job in FUNCTIONS:
        outcome, counts, names = json.loads(_python(RUN, job, environment=environment).stdout)
        if outcome == "error" or (job != "prune" and outcome != "degraded"):  # nobody answers: the adapter was used
            raise RuntimeError(f"{job}: {outcome}, {counts}")
        loaded[job] = names
    return loaded


def _python(
    program: str,
    *arguments: str,
    options: Sequence[str] = (),
    given: str = "",
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter that knows no settings but those given."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SITEBELL_")}
    return subprocess.run(  # noqa: S603 - our own words
        [sys.executable, *options, "-c", textwrap.dedent(program), *arguments],
        input=given,
        env={**ours, "PYTHONPATH": str(ROOT), **(environment or {})},
        cwd=gettempdir(),  # where no .env of ours is
        capture_output=True,
        text=True,
        check=True,
    )
