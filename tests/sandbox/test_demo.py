import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from sandbox.demo import start_demo
from tests.sandbox.conftest import MovingClock, Visitor, client

ROOT = Path(__file__).parents[2]


def test_the_demo_weekend_opens_after_20_seconds_is_taken_and_opens_again(clock: MovingClock) -> None:
    with start_demo(clock) as demo, client(demo.site_url) as http:

        def open_nights() -> list[str]:
            months = {f"{night:%Y-%m}-01" for night in (demo.start, demo.end)}
            bodies = [Visitor(http).month(demo.campground_id, month).json() for month in sorted(months)]
            return [
                night[:10]
                for body in bodies
                for record in body["campsites"].values()
                for night, status in record["availabilities"].items()
                if status == "Available"
            ]

        weekend = [f"{demo.start + timedelta(days=day)}" for day in range(2)]
        assert open_nights() == []
        for seconds, expected in ((20, weekend), (60, weekend), (60, []), (60, []), (60, weekend)):
            clock.move(seconds=seconds)
            assert open_nights() == expected


def test_the_demo_has_a_range_in_the_future_and_keys_that_its_push_service_takes(clock: MovingClock) -> None:
    with start_demo(clock) as demo, client() as http:
        assert demo.start >= clock().date() + timedelta(days=7)
        assert demo.start.strftime("%A") == "Friday"
        assert demo.end == demo.start + timedelta(days=3)
        form = {"token": demo.app_token, "user": demo.user_key, "message": "hello"}
        assert http.post(f"{demo.push_url}/1/messages.json", data=form).status_code == 200
        record = http.get(f"{demo.site_url}/api/camps/campgrounds/{demo.campground_id}").json()["campground"]
        assert record["facility_name"] == demo.campground_name


def test_a_port_in_use_leaves_nothing_running(clock: MovingClock) -> None:
    with start_demo(clock) as demo, pytest.raises(OSError, match="in use"):
        start_demo(clock, push_port=httpx.URL(demo.push_url).port or 0)


def test_the_command_says_what_it_serves_and_stops_on_interrupt() -> None:
    command = [sys.executable, "-m", "sandbox", "--site-port", "0", "--push-port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0
    assert lines[0].startswith("booking site  http://127.0.0.1:")
    assert lines[1].startswith("push service  http://127.0.0.1:")
    assert "900001" in lines[2]


def test_the_command_says_when_it_cannot_listen_or_find_a_folder(clock: MovingClock) -> None:
    command = [sys.executable, "-m", "sandbox", "--push-port", "0", "--site-port"]
    with start_demo(clock) as demo:
        port = str(httpx.URL(demo.site_url).port)
        taken = subprocess.run([*command, port], cwd=ROOT, capture_output=True, text=True, check=False, timeout=20)
    missing = subprocess.run(
        [*command, "0", "--recordings", "nowhere"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=20
    )
    assert (taken.returncode, missing.returncode) == (1, 1)
    assert "cannot listen" in taken.stdout
    assert "no folder of recordings at nowhere" in missing.stdout
