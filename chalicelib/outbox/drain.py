"""Drain: work off what is due, one row at a time, and stop in time."""

import logging
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from threading import Lock
from uuid import UUID, uuid4

from sqlalchemy import select

from chalicelib.channels.contract import Channel, Message
from chalicelib.channels.outcomes import DeliveryError, DeliveryErrorCategory, Outcome, OutcomeClass
from chalicelib.db.engine import STORAGE_FAULTS
from chalicelib.db.tables import notification_outbox
from chalicelib.deadline import begin
from chalicelib.deps import Deps
from chalicelib.history import JobAttempt, RunResult
from chalicelib.outbox.acknowledge import acknowledge, patiently
from chalicelib.outbox.backlog import backlog
from chalicelib.outbox.claim import LEASE_MARGIN, Claim, KindFull, RowBroken, claim_broken, claim_next
from chalicelib.outbox.finish import finish
from chalicelib.outbox.looks import Looks
from chalicelib.outbox.states import (
    ATTEMPTS_EXHAUSTED,
    INTERNAL_ERROR,
    INTERRUPTED,
    MAX_ATTEMPTS,
    SkipReason,
    Status,
    move,
)
from chalicelib.outbox.wording import message_of

log = logging.getLogger(__name__)

WORKERS = 4
COUNTED = {Status.SENT: "sent", Status.RETRY: "retried", Status.FAILED: "failed"}
"""What a run's counts call the end of an attempt."""


def run(deps: Deps, until: datetime, *, workers: int = WORKERS) -> RunResult:
    """Send what is due, and begin no attempt that could not end before `until`.

    1. Interrupted attempts, whose lease has ended, wait for another one or have used up all four.
    2. Workers each claim a row (one transaction), send it (none), and acknowledge it (another).
    3. Whatever is left stays due. A row is tried once a run.

    A fault of the storage stops the run, whose outcome is then `error`; rows in flight are recovered by a later one.
    """
    drain = _Drain(deps, until)
    if not deps.settings.pause_sending:
        drain.work_off(workers)
    return drain.result()


class _Drain:
    """One run. Its workers share counts and history, and stop together."""

    def __init__(self, deps: Deps, until: datetime) -> None:
        self.deps = deps
        self.until = until
        self.run_id = uuid4()
        self.started = deps.clock()
        self.counts = Counter[str]()
        self.history: list[JobAttempt] = []
        self.storage_failed = False
        self.row_broke = False
        self._troubled: set[str] = set()
        self._looks = Looks()
        self._lock = Lock()

    def work_off(self, workers: int) -> None:
        try:
            self.counts["recovered"] = patiently(self.deps, lambda: recover(self.deps, self.started))
            due = self._due()
        except STORAGE_FAULTS as error:
            self._storage_fault(error)
            return
        needed = min(workers, due)
        if needed == 1:
            self._work()
        elif needed:
            with ThreadPoolExecutor(needed) as pool:
                for worker in [pool.submit(self._work) for _ in range(needed)]:
                    worker.result()

    def result(self) -> RunResult:
        remaining = 0
        try:
            remaining = self._due()
        except STORAGE_FAULTS as error:
            self._storage_fault(error)
        troubled = self.counts["failed"] or self.counts["retried"] or self.row_broke
        outcome = "error" if self.storage_failed else "degraded" if troubled else "success"
        keys = ("claimed", "recovered", "sent", "retried", "skipped", "failed")
        counts = {**{key: self.counts[key] for key in keys}, "remaining": remaining}
        return RunResult("drain", self.run_id, self.started, self.deps.clock(), outcome, counts, tuple(self.history))

    def _work(self) -> None:
        """Take row after row until none is due, none may be sent, or the time left is too short for another."""
        full: set[str] = set()
        while not self.storage_failed and (seconds := self._seconds_to_begin()) >= 0:
            try:
                with self._looks.one() as look:
                    claim = patiently(self.deps, lambda: claim_next(self.deps, self.started, full))
                if isinstance(claim, Claim):
                    self._attempt(claim)
                elif isinstance(claim, SkipReason):
                    self._count("skipped")
                elif not self._looks.worth_another(look, full, seconds):
                    return
            except KindFull as error:
                full.add(error.kind)
            except RowBroken as broken:
                self._charge(broken.row_id)
            except STORAGE_FAULTS as error:
                self._storage_fault(error)

    def _seconds_to_begin(self) -> float:
        """Time in which an attempt may still begin; less than none where it could not end before `until`."""
        attempt = timedelta(seconds=self.deps.settings.attempt_deadline) + LEASE_MARGIN
        return (self.until - attempt - self.deps.clock()).total_seconds()

    def _attempt(self, claim: Claim) -> None:
        """Send a claimed row and record what came of it."""
        self._count("claimed")
        began = self.deps.clock()
        if claim.alert is None or claim.kind is None:
            outcome = Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.MALFORMED_PAYLOAD)
        else:
            outcome = self._send(claim, self.deps.channels[claim.kind], message_of(claim.alert))
            claim = self._watched(claim, outcome)
        status = patiently(self.deps, lambda: acknowledge(self.deps, claim, outcome))
        self._tell(claim, outcome, status, began)

    def _send(self, claim: Claim, channel: Channel, message: Message) -> Outcome | None:
        """One attempt within its total deadline; None when the code itself broke.

        The attempt runs in a thread of its own, which is abandoned at the deadline: nothing else bounds a name's
        look-up or a dripping answer. If it is accepted after all, that settles the row, unless a newer attempt has it.
        """
        now = self.deps.clock()
        answer = begin(lambda: channel.send(claim.recipient, message, now))
        if not wait([answer], self.deps.settings.attempt_deadline).done:
            answer.add_done_callback(lambda late: _settle_late(self.deps, claim, late))
            return Outcome(OutcomeClass.AMBIGUOUS, DeliveryErrorCategory.TIMEOUT)
        try:
            return answer.result()
        except DeliveryError as error:
            return error.outcome
        except Exception:  # a fault of the adapter is this attempt's alone
            log.exception("a channel broke", extra={"outbox_id": str(claim.id), "kind": claim.kind})
            self.row_broke = True
            return None

    def _watched(self, claim: Claim, outcome: Outcome | None) -> Claim:
        """Note trouble of a kind within this run, so that the next acceptance clears it."""
        with self._lock:
            if claim.kind in self._troubled:
                claim = claim.in_trouble()
            if claim.kind and outcome and outcome.kind is not OutcomeClass.ACCEPTED:
                self._troubled.add(claim.kind)
        return claim

    def _charge(self, row_id: UUID) -> None:
        """A row that makes the code raise pays with an attempt, and cannot stop the run."""
        self.row_broke = True
        try:
            claim = patiently(self.deps, lambda: claim_broken(self.deps, row_id))
            if claim is None:
                return
            self._count("claimed")
            status = patiently(self.deps, lambda: acknowledge(self.deps, claim, None))
            self._tell(claim, None, status, self.deps.clock())
        except STORAGE_FAULTS as error:
            self._storage_fault(error)

    def _tell(self, claim: Claim, outcome: Outcome | None, status: Status | None, began: datetime) -> None:
        category = outcome.category if outcome else INTERNAL_ERROR
        if status is not None:
            self._count(COUNTED[status])
            log.info(
                "alert %s: %s",
                COUNTED[status],
                claim.alert.title if claim.alert else "unreadable",
                extra={"outbox_id": str(claim.id), "attempt": claim.attempt, "error_category": category},
            )
        attempt = JobAttempt(
            job_id=claim.id,
            kind="delivery",
            attempt=claim.attempt,
            started_at=began,
            finished_at=self.deps.clock(),
            outcome=COUNTED[status] if status else "stale",
            error_category=category,
            provider=claim.kind,
            target_id=claim.target_id,
        )
        self.deps.runtime.add(attempt)
        with self._lock:
            self.history.append(attempt)

    def _due(self) -> int:
        return backlog(self.deps.database, self.deps.clock()).due

    def _count(self, name: str) -> None:
        with self._lock:
            self.counts[name] += 1

    def _storage_fault(self, error: Exception) -> None:
        log.error("the storage failed; this drain stops", exc_info=error)
        self.storage_failed = True
        self._looks.stop()


def recover(deps: Deps, now: datetime) -> int:
    """Rows whose attempt was interrupted become due at `now`, or failed when all four are used. Gives back how many."""
    o = notification_outbox.c
    with deps.database.transaction() as connection:
        ended = (o.status == Status.SENDING.value, o.next_attempt_at <= now)
        again = move([Status.SENDING], Status.RETRY, next_attempt_at=now, error_category=INTERRUPTED)
        recovered = connection.execute(again.where(*ended, o.attempt_count < MAX_ATTEMPTS)).rowcount
        used_up = select(o.id).where(*ended).with_for_update(skip_locked=True)
        for row_id in connection.execute(used_up).scalars().all():
            recovered += finish(connection, row_id, [Status.SENDING], Status.FAILED, now, category=ATTEMPTS_EXHAUSTED)
    return recovered


def _settle_late(deps: Deps, claim: Claim, late: Future[Outcome]) -> None:
    """An abandoned send ended: its acceptance, and nothing else, is worth recording."""
    if late.exception() is not None or late.result().kind is not OutcomeClass.ACCEPTED:
        return
    try:
        patiently(deps, lambda: acknowledge(deps, claim, late.result()))
    except STORAGE_FAULTS:
        log.exception("a late acceptance could not be recorded", extra={"outbox_id": str(claim.id)})
