"""`/api/health`: the process is alive. `/api/ready`: it can do its work."""

from datetime import timedelta
from http import HTTPStatus

from chalice.app import Blueprint, Response

from chalicelib import wiring
from chalicelib.history import iso

routes = Blueprint(__name__)


@routes.route("/api/health", methods=["GET"])
def health() -> dict[str, str]:
    """Alive, whatever the database says."""
    return {"status": "alive", "version": wiring.VERSION}


@routes.route("/api/ready", methods=["GET"])
def ready() -> Response:
    """200 where the database is at head and no scheduled function of this process is broken, else 503.

    `backlog` says how many alerts are due and how old the oldest of them is (seconds), `last_discovery` when the last
    successful check began. An empty instance is ready.
    """
    state = wiring.readiness()
    body: dict[str, object] = {
        "status": "ready" if state.problem is None else "not_ready",
        "problem": state.problem,
        "backlog": {"due": state.due, "oldest_seconds": _seconds(state.oldest)},
        "last_discovery": iso(state.last_discovery) if state.last_discovery else None,
        "running": list(state.running),
        "pending": list(state.pending),
    }
    return Response(body, status_code=HTTPStatus.OK if state.problem is None else HTTPStatus.SERVICE_UNAVAILABLE)


def _seconds(age: timedelta | None) -> int | None:
    return None if age is None else int(age.total_seconds())
