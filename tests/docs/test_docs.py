"""The documents: what is made from the code is fresh, and what is named exists."""

import re
import shlex
from pathlib import Path

import click
import pytest

from chalicelib.cli.main import cli
from chalicelib.settings import PREFIX, Settings
from tools.docs import ROOT, made

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "bench" / "README.md"])
GUIDE = re.compile(r"\*\*From an opening to a push in eight files\*\*:(.*?)More:", re.DOTALL)
STEPS = {
    "app.py": ["def detect", "def drain", "def prune"],
    "chalicelib/detection/detect.py": ["def run", "is_unchanged", "record("],
    "chalicelib/detection/record.py": ["compare(", "enqueue("],
    "chalicelib/stays/openings.py": ["def compare"],
    "chalicelib/outbox/drain.py": ["claim_next(", "channel.send(", "acknowledge("],
    "chalicelib/outbox/claim.py": ["nights_to_tell("],
    "chalicelib/channels/pushover.py": ["def send"],
}


@pytest.mark.parametrize("path", sorted(made()), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_made_from_the_code_is_fresh(path: Path) -> None:
    assert path.read_text("utf-8") == made()[path], "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_setting_named_exists(page: Path) -> None:
    named = set(re.findall(rf"{PREFIX}[A-Z_]+[A-Z]", page.read_text("utf-8")))
    assert named <= {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | {"SITEBELL_TEST_POSTGRES"}


def test_every_command_of_the_readme_parses() -> None:
    text = (ROOT / "README.md").read_text("utf-8").replace("\\\n", " ")
    commands = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^sitebell .+$", text, re.MULTILINE)]
    commands += [shlex.split(line) for line in re.findall(r"`sitebell ([^`]+)`", text)]
    assert len(commands) >= 7
    for words in commands:
        command: click.Command = cli
        for word in words:
            if not isinstance(command, click.Group):
                break
            found = command.get_command(click.Context(command), word)
            assert found, f"no command {word}"
            command = found
        given = {word for word in words if word.startswith("--")}
        assert given <= {option for parameter in command.params for option in parameter.opts}, words


def test_the_reading_guide_leads_from_an_opening_to_a_push_in_eight_files() -> None:
    found = GUIDE.search((ROOT / "README.md").read_text("utf-8"))
    assert found
    assert re.findall(r"\]\(([^)]+)", found[1]) == list(STEPS)
    assert len(STEPS) + 1 == 8
    for name, words in STEPS.items():
        text = (ROOT / name).read_text("utf-8")
        assert [word for word in words if word not in text] == [], name
