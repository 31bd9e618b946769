"""Commands as processes, wired for production: settings from the environment, exit codes to the shell."""

import json
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chalicelib.db.vault import new_key
from tests.cli.conftest import Process
from tests.cli.support import ROOT

NOBODY_THERE = "http://127.0.0.1:9"  # the discard port: nothing listens


def test_a_first_hour_by_command_line(process: Process, empty_database_url: str) -> None:
    env = {"SITEBELL_DATABASE_URL": empty_database_url, "SITEBELL_RECREATION_GOV_URL": NOBODY_THERE}
    key = "u" * 30
    assert process("db", "check", env=env).returncode == 1
    assert process("db", "upgrade", env=env).returncode == 0
    assert process("db", "check", env=env).returncode == 0
    user = process("users", "add", "--email", "ann@example.org", "--json", env=env)
    assert json.loads(user.stdout)["email"] == "ann@example.org"
    channel = process(
        "channels", "add", "--user", "ann@example.org", "--kind", "pushover", "--to", "-", "--json", stdin=key, env=env
    )
    assert channel.returncode == 0, channel.stderr
    dates = ("--from", "2097-07-10", "--until", "2097-07-20")
    add = (
        "scans",
        "add",
        "--user",
        "ann@example.org",
        "--provider",
        "recreation_gov",
        "--campground",
        "232447",
        *dates,
    )
    added = process(*add, "--json", env=env)  # nobody answers: the scan is made all the same
    assert added.returncode == 0, added.stderr
    scan_id = json.loads(added.stdout)["id"]
    again = process(*add, "--json", env=env)
    assert (again.returncode, json.loads(again.stdout)["id"]) == (1, scan_id)
    shown = process("scans", "show", scan_id, "--json", env=env)
    assert json.loads(shown.stdout)["results"] == []
    plain = process("scans", "show", scan_id, env={**env, "PYTHONIOENCODING": "latin-1"})
    assert "2097-07-10 ? 2097-07-20" in plain.stdout  # a terminal without arrows still gets the words
    listed = process("outbox", "list", "--json", env=env)
    assert json.loads(listed.stdout) == []
    told = "".join(done.stdout + done.stderr for done in (user, channel, added, again, shown, listed))
    assert key not in told
    assert "Traceback" not in told


def test_a_database_without_a_schema_fails_and_says_what_to_do(process: Process) -> None:
    for words in (("users", "list"), ("run", "detect"), ("db", "check")):
        done = process(*words, "--json")
        assert done.returncode == 1
        assert "db upgrade" in done.stderr
        assert "db upgrade" in json.loads(done.stdout)["error"]
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "url"),
    [
        ("users list", "postgresql://ann:hunter2@127.0.0.1:9/sitebell"),
        ("users list", "postgresql://ann:hunter2@127.0.0.1:hunter2/sitebell"),
        ("db upgrade", "postgresql://ann:hunter2@127.0.0.1:hunter2/sitebell"),
        ("db check", "postgresql://ann:hunter2@127.0.0.1:hunter2/sitebell"),
        ("db upgrade", "postgresql://ann:hunter2@127.0.0.1/sitebell?sslmode=hunter"),
        ("users list", "postgresql:hunter2"),
        ("users list", "mysql://ann:hunter2@127.0.0.1/sitebell"),
        ("db upgrade", "sqlite:////dev/null/hunter/sitebell.db"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_line_without_a_password(process: Process, words: str, url: str) -> None:
    done = process(*words.split(), env={"SITEBELL_DATABASE_URL": url})
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SITEBELL_CHECK_INTERVAL", "hunter2"),
        ("SITEBELL_SECRET_KEYS", "hunter2"),
        ("SITEBELL_PUSHOVER_URL", "http://hunter2.example"),
    ],
)
def test_a_setting_that_cannot_be_is_named_without_its_value(process: Process, name: str, value: str) -> None:
    assert process("db", "upgrade").returncode == 0
    done = process("users", "list", env={name: value})
    assert done.returncode == 1
    assert name in done.stderr
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


def test_local_commands_make_their_keys_once_for_the_owner_alone(process: Process, tmp_path: Path) -> None:
    keys = tmp_path / ".data" / "secret_keys"
    process("db", "upgrade")
    assert not keys.exists()
    with ThreadPoolExecutor(3) as pool:
        done = [future.result() for future in [pool.submit(process, "users", "list") for _ in range(3)]]
    assert [one.returncode for one in done] == [0, 0, 0]
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert len(keys.read_text().split()) == 1
    assert [path.name for path in keys.parent.iterdir() if "secret_keys" in path.name] == ["secret_keys"]


def test_given_keys_leave_no_file_behind(process: Process, tmp_path: Path) -> None:
    env = {"SITEBELL_SECRET_KEYS": new_key()}
    process("db", "upgrade", env=env)
    assert process("users", "list", env=env).returncode == 0
    assert not (tmp_path / ".data" / "secret_keys").exists()


def test_the_cloud_refuses_to_make_keys(process: Process) -> None:
    done = process("users", "list", env={"AWS_LAMBDA_FUNCTION_NAME": "sitebell"})
    assert done.returncode == 1
    assert "SITEBELL_SECRET_KEYS" in done.stderr


def test_a_fresh_key_is_printed_alone(process: Process) -> None:
    assert len(process("keys", "new").stdout.strip()) == 44
    assert set(json.loads(process("keys", "new", "--json").stdout)) == {"key"}


def test_help_waits_for_nothing_heavy() -> None:
    heavy = ("sqlalchemy", "pydantic", "httpx", "chalice", "cryptography")
    code = f"import sys, chalicelib.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
