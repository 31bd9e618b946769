"""The local runner, as a person starts it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import httpx
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path: Path) -> subprocess.Popen[str]:
    """`make run` without make, in an empty folder, on a free port."""
    return subprocess.Popen(
        [sys.executable, "-m", "chalicelib", "demo", "--port", "0"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_demo_tells_of_an_opening_serves_its_state_and_stops_when_told(demo: subprocess.Popen[str]) -> None:
    guard = Timer(60, demo.kill)
    guard.start()
    with demo:
        assert demo.stderr
        story: list[str] = []
        url = ""
        for line in demo.stderr:
            story.append(line)
            if match := re.search(r"Sitebell is at (http\S+)", line):
                url = match[1]
            if "alert sent" in line:
                break
        assert url, "".join(story)
        ready = httpx.get(f"{url}/api/ready", verify=False, trust_env=False)
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        demo.send_signal(signal.SIGTERM)
        rest = demo.stderr.read()
    guard.cancel()
    told = "".join([*story, rest])
    assert demo.returncode == 0, told
    assert re.search(r"push   Cinder Flat Campground: 1 campsite is open: Site 004 \(Juniper\): .* 1 night", told), told
    assert "Traceback" not in told
