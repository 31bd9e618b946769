"""What a cold start has to load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEVER = ("alembic", "boto3", "botocore", "ijson", "sandbox", "sqlalchemy.orm", "tests")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_scheduled_functions_load_no_orm_no_tools_and_no_sdk(configured: str, tmp_path: Path) -> None:
    script = (
        "import sys, app\n"
        "from chalicelib import wiring\n"
        "with wiring.wired() as deps:\n"
        "    for job in ('detect', 'drain', 'prune'):\n"
        "        assert wiring.run(job, deps, 60).outcome == 'success'\n"
        f"print([name for name in {NEVER!r} if name in sys.modules])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_importing_the_app_reads_no_setting(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SITEBELL_DATABASE_URL": "nonsense://"}
    subprocess.run([sys.executable, "-c", "import app"], cwd=tmp_path, env=environment, check=True)
