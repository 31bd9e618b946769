"""Runtime history: what ran in this invocation, in memory only, with nothing in it that is secret or large."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any
from uuid import UUID, uuid4

MAX_ATTEMPTS = 1000
MAX_AGE = timedelta(hours=24)

Clock = Callable[[], datetime]
"""Gives the present moment, UTC and aware. Handed in everywhere, so that tests move time by hand."""


def utc_now() -> datetime:
    """The clock of production."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class JobAttempt:
    """One finished try at one job.

    `job_id` stays the same over the retries of one polling cycle; `event_id` is this try's own; `attempt` counts from
    1.
    """

    job_id: UUID
    kind: str
    attempt: int
    started_at: datetime
    finished_at: datetime
    outcome: str
    error_category: str | None = None
    provider: str | None = None
    target_id: UUID | None = None
    event_id: UUID = field(default_factory=uuid4)

    def to_json(self) -> dict[str, Any]:
        """The allow-listed fields, and no others."""
        return {
            "event_id": str(self.event_id),
            "job_id": str(self.job_id),
            "kind": self.kind,
            "attempt": self.attempt,
            "started_at": iso(self.started_at),
            "finished_at": iso(self.finished_at),
            "outcome": self.outcome,
            "error_category": self.error_category,
            "provider": self.provider,
            "target_id": str(self.target_id) if self.target_id else None,
        }


class RuntimeState:
    """What a process knows of its own work: made anew by each cloud invocation, kept for life by a long-lived process.

    Safe under threads. Nothing of it is stored: a restart clears it, and pending alerts come back from the outbox.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._attempts: deque[JobAttempt] = deque(maxlen=MAX_ATTEMPTS)
        self._in_flight: set[UUID] = set()
        self._running: dict[str, int] = {}
        self._pending: set[str] = set()
        self._unhealthy: dict[str, datetime] = {}
        self.last_discovery: datetime | None = None

    def begin(self, target_id: UUID) -> bool:
        """Mark a target as being checked; False when it already is, in this process."""
        with self._lock:
            if target_id in self._in_flight:
                return False
            self._in_flight.add(target_id)
            return True

    def end(self, target_id: UUID) -> None:
        """Take the mark of `begin` away."""
        with self._lock:
            self._in_flight.discard(target_id)

    def add(self, attempt: JobAttempt) -> None:
        """Remember a finished attempt; the oldest beyond 1,000 and those older than 24 hours are forgotten."""
        with self._lock:
            self._attempts.append(attempt)
            while self._attempts and self._attempts[0].finished_at < attempt.finished_at - MAX_AGE:
                self._attempts.popleft()

    def attempts(self) -> list[JobAttempt]:
        """Finished attempts, oldest first."""
        with self._lock:
            return list(self._attempts)

    def ask(self, job: str) -> bool:
        """Note that a job shall run soon; False where that was noted already: however often asked, it runs once."""
        with self._lock:
            if job in self._pending:
                return False
            self._pending.add(job)
            return True

    def pending(self) -> list[str]:
        """Names of the jobs that were asked for and have not begun."""
        with self._lock:
            return sorted(self._pending)

    def run_started(self, job: str) -> None:
        """Count a job as running; what is asked for from now on is another run."""
        with self._lock:
            self._pending.discard(job)
            self._running[job] = self._running.get(job, 0) + 1

    def run_finished(self, job: str, *, at: datetime, healthy: bool) -> None:
        """Note the end of a run. An unhealthy job stays so until one of its runs succeeds."""
        with self._lock:
            self._running[job] = max(0, self._running.get(job, 0) - 1)
            if healthy:
                self._unhealthy.pop(job, None)
            else:
                self._unhealthy.setdefault(job, at)

    def running(self) -> list[str]:
        """Names of the jobs that run now."""
        with self._lock:
            return sorted(job for job, count in self._running.items() if count)

    def unhealthy(self) -> Mapping[str, datetime]:
        """Jobs whose last run broke, with the moment since when."""
        with self._lock:
            return dict(self._unhealthy)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one run of detect, drain or prune gives back: logged and printed whole."""

    job: str
    run_id: UUID
    started_at: datetime
    finished_at: datetime
    outcome: str
    counts: Mapping[str, int]
    history: tuple[JobAttempt, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The shape that schedulers and the command line see."""
        return {
            "job": self.job,
            "run_id": str(self.run_id),
            "started_at": iso(self.started_at),
            "finished_at": iso(self.finished_at),
            "outcome": self.outcome,
            "counts": dict(self.counts),
            "history": [attempt.to_json() for attempt in self.history],
        }


def iso(moment: datetime) -> str:
    """UTC with a `Z`, as every answer of ours says times."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
