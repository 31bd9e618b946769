"""The Chalice app: its functions as a scheduler calls them, its routes as a browser does."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chalice.config import Config
from chalice.deploy.validate import validate_configuration
from chalice.test import Client

from app import app
from chalicelib import wiring
from chalicelib.db import engine
from chalicelib.history import utc_now
from chalicelib.runtime.local import LONGEST_RUN, schedules

ROOT = Path(__file__).parents[2]
COUNTS = {
    "detect": "targets_due targets_checked targets_failed targets_skipped requests openings intents",
    "drain": "claimed recovered sent retried skipped failed remaining",
    "prune": "deleted",
}


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(app, project_dir=str(ROOT)) as client:
        yield client


@pytest.mark.parametrize("job", sorted(COUNTS))
def test_a_scheduled_function_gives_its_result(client: Client, configured: str, job: str) -> None:
    event = client.events.generate_cw_event("aws.events", "Scheduled Event", {}, [], region="us-east-1")
    result = client.lambda_.invoke(job, event).payload
    assert set(result) == {"job", "run_id", "started_at", "finished_at", "outcome", "counts", "history"}
    assert (result["job"], result["outcome"], result["history"]) == (job, "success", [])
    assert result["counts"] == dict.fromkeys(COUNTS[job].split(), 0)
    assert result["started_at"].endswith("Z")
    json.dumps(result)


def test_detect_and_drain_run_every_minute_and_prune_every_hour() -> None:
    assert {schedule.job: schedule.seconds for schedule in schedules(app)} == {"detect": 60, "drain": 60, "prune": 3600}


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_every_function_of_a_stage_has_its_memory_timeout_and_concurrency(stage: str) -> None:
    on_disk: dict[str, Any] = json.loads((ROOT / ".chalice" / "config.json").read_text())
    functions = on_disk["stages"][stage]["lambda_functions"]
    assert set(functions) == {"api_handler", *COUNTS}
    for name, function in functions.items():
        assert set(function) == {"lambda_memory_size", "lambda_timeout", "reserved_concurrency"}
        if name in COUNTS:
            assert function["lambda_timeout"] == LONGEST_RUN[name]
    given = {"chalice_app": lambda: app, "project_dir": str(ROOT)}
    validate_configuration(Config(chalice_stage=stage, user_provided_params=given, config_from_disk=on_disk))


def test_health_says_alive_without_a_database(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITEBELL_DATABASE_URL", "postgresql://u@127.0.0.1:1/nowhere")
    assert client.http.get("/api/health").json_body["status"] == "alive"


def test_an_empty_instance_is_ready(client: Client, configured: str) -> None:
    answer = client.http.get("/api/ready")
    assert answer.status_code == 200
    assert answer.json_body["backlog"] == {"due": 0, "oldest_seconds": None}
    assert answer.json_body["last_discovery"] is None


def test_an_instance_without_a_schema_is_not_ready_and_says_what_to_do(client: Client) -> None:
    answer = client.http.get("/api/ready")
    assert answer.status_code == 503
    assert "db upgrade" in answer.json_body["problem"]


def test_an_instance_without_a_database_is_not_ready(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITEBELL_DATABASE_URL", "postgresql://u@127.0.0.1:1/nowhere")
    answer = client.http.get("/api/ready")
    assert (answer.status_code, answer.json_body["problem"]) == (503, "the database does not answer")


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_an_instance_whose_database_falls_silent_is_not_ready(
    client: Client, configured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver tells it by a bare TimeoutError."""
    monkeypatch.setattr(engine, "NETWORK_TIMEOUT", 0.3)
    with closing(engine.Database(configured)) as elsewhere, elsewhere.transaction() as holder:
        holder.exec_driver_sql("LOCK TABLE notification_outbox IN ACCESS EXCLUSIVE MODE")
        answer = client.http.get("/api/ready")
    assert (answer.status_code, answer.json_body["problem"]) == (503, "the database does not answer")


def test_a_process_whose_drain_broke_is_not_ready_until_a_drain_succeeds(client: Client, configured: str) -> None:
    runtime = wiring.process_runtime()
    runtime.run_started("drain")
    runtime.run_finished("drain", at=utc_now(), healthy=False)
    assert client.http.get("/api/ready").status_code == 503
    with wiring.wired(runtime=runtime) as deps:
        wiring.run("drain", deps, 60)
    assert client.http.get("/api/ready").status_code == 200


def test_the_start_page_says_how_the_instance_is(client: Client, configured: str) -> None:
    page = client.http.get("/")
    assert page.status_code == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"<dd>ready</dd>" in page.body
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
