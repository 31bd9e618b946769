from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from click.testing import CliRunner, Result

from chalicelib.cli.main import cli
from chalicelib.db.engine import Database
from tests.cli.support import run_process
from tests.support.standins import World, make_world


@pytest.fixture
def world(database: Database) -> World:
    return make_world(database)


Invoke = Callable[..., Result]
Process = Callable[..., CompletedProcess[str]]


@pytest.fixture
def invoke(world: World) -> Invoke:
    """Run one command inside this process, over the world's stand-ins."""

    def run(*words: object, stdin: str = "") -> Result:
        obj: Any = lambda: nullcontext(world.deps)  # noqa: E731
        return CliRunner().invoke(cli, [str(word) for word in words], input=stdin, obj=obj)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Run one command as a person would, in an empty folder and with next to no environment."""

    def run(*words: object, stdin: str = "", env: Mapping[str, str] | None = None) -> CompletedProcess[str]:
        return run_process(tmp_path, words, stdin=stdin, env=env or {})

    return run
