"""Detect: check every due target once, and write what was found together with what is to be told."""

import logging
from collections import Counter, deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from functools import lru_cache
from threading import Lock
from uuid import UUID, uuid4, uuid5

from sqlalchemy import Update, bindparam, func, or_, update

from chalicelib.catalog.metadata import remember_metadata
from chalicelib.db.tables import campgrounds, unique_targets
from chalicelib.deps import Deps
from chalicelib.detection.documents import Documents
from chalicelib.detection.due import Target, due_targets
from chalicelib.detection.pace import Pace
from chalicelib.detection.record import Found, Recorded, fingerprint_of, is_unchanged, record
from chalicelib.history import MAX_ATTEMPTS, JobAttempt, RunResult
from chalicelib.providers.contract import CampsiteMetadata, CheckError, Provider, ProviderError
from chalicelib.stays.nights import months

log = logging.getLogger(__name__)

COUNTS = (
    "targets_due",
    "targets_checked",
    "targets_failed",
    "targets_skipped",
    "requests",
    "openings",
    "intents",
)
METADATA_AGE = timedelta(days=1)
METADATA_RETRY = 10  # checks
LONGEST_BACKOFF = timedelta(minutes=30)
LEASE_MARGIN = timedelta(seconds=5)


def run(deps: Deps, until: datetime) -> RunResult:
    """Check what is due, and stop beginning checks in time to end before `until`.

    1. List the due targets, most urgent first.
    2. Each provider's targets are checked in that order, beside those of other providers.
    3. Whatever budget, breaker or time left over stays due.

    Raises what the database raises when nothing can be listed; the failure of one target is only counted.
    """
    run_id, started = uuid4(), deps.clock()
    targets = due_targets(deps, started)
    counts = Counter(targets_due=len(targets))
    lanes: list[_Lane] = []
    for provider_id in dict.fromkeys(target.provider for target in targets):
        own = [target for target in targets if target.provider == provider_id]
        if provider_id in deps.providers:
            lanes.append(_Lane(deps, deps.providers[provider_id], own, until))
        else:
            log.warning("no adapter for a provider", extra={"provider": provider_id})
            counts["targets_skipped"] += len(own)
    if lanes:
        with ThreadPoolExecutor(sum(lane.width for lane in lanes)) as pool:
            for worker in [pool.submit(lane.work) for lane in lanes for _ in range(lane.width)]:
                worker.result()
    for lane in lanes:
        counts.update(lane.counts)
        counts["targets_skipped"] += len(lane.waiting)
    if counts["targets_checked"]:
        deps.runtime.last_discovery = started
    troubled = counts["targets_failed"] or any(lane.unavailable for lane in lanes)
    history = tuple(attempt for lane in lanes for attempt in lane.history)[-MAX_ATTEMPTS:]
    outcome = "degraded" if troubled else "success"
    return RunResult("detect", run_id, started, deps.clock(), outcome, {key: counts[key] for key in COUNTS}, history)


class _Lane:
    """One provider's part of a run. Several threads may `work` at once; each takes the next target in order."""

    def __init__(self, deps: Deps, provider: Provider, targets: Iterable[Target], until: datetime) -> None:
        self.deps = deps
        self.provider = provider
        self.width = provider.info.concurrency
        self.until = until
        self.waiting = deque(targets)
        self.counts = Counter[str]()
        self.history: list[JobAttempt] = []
        self.unavailable = False
        self._pace = Pace(deps.database, provider.info.id, deps.settings.per_minute(provider.info.id), deps.clock)
        self._documents = Documents(provider, self._pace, deps.clock)
        self._lock = Lock()
        self._opened = False
        self._closed = False

    def work(self) -> None:
        """Check targets until none is left, or until budget, breaker or time say stop."""
        while (target := self._next()) is not None:
            try:
                self._check(target)
            except Exception:  # one target must not stop the others; its lease ends by itself
                log.exception("check of a target broke", extra={"target_id": str(target.id)})
                self._count(targets_failed=1)
            finally:
                self.deps.runtime.end(target.id)

    def _next(self) -> Target | None:
        with self._lock:
            fetch = timedelta(seconds=self.deps.settings.fetch_deadline)
            if self.deps.clock() + fetch > self.until:
                return None
            if not self._opened:
                self._opened = True
                self._closed = not self._available()
            if self._closed or self.deps.clock() + fetch > self.until:
                return None
            while self.waiting:
                target = self.waiting.popleft()
                if self.deps.runtime.begin(target.id):
                    return target
                self.counts["targets_skipped"] += 1
            return None

    def _available(self) -> bool:
        """Whether the breaker lets requests through; when half open, one request finds out."""
        if not self._pace.half_open():
            self.unavailable = self._pace.is_open()
            return not self.unavailable
        target = self.waiting[0]
        wanted = self._months(target)
        if wanted and self._pace.take_probe():
            self._documents.probe(target.campground_id, wanted[0])
            self.counts["requests"] += 1
            if self._pace.is_open() or self._pace.half_open():
                self._send_back(target)
        self.unavailable = self._pace.is_open() or self._pace.half_open()
        return not self.unavailable

    def _send_back(self, target: Target) -> None:
        """The next probe is another target's: one that always fails must not keep the breaker open for all."""
        statement = (
            update(unique_targets).where(unique_targets.c.id == target.id).values(last_attempt_at=self.deps.clock())
        )
        with self.deps.database.transaction() as connection:
            connection.execute(statement)

    def _check(self, target: Target) -> None:
        """Check one target.

        1. Lease it, so that no other process checks it too.
        2. Draw on the budget and fetch its months, and campsite metadata where that is due.
        3. What has not changed needs no reading; else record what was found, or that nothing was.
        """
        now = self.deps.clock()
        wanted = self._months(target)
        token = self._lease(target, len(wanted) + 1, now) if wanted else None  # its last night may just have passed
        if token is None:
            self._count(targets_skipped=1)
            return
        fetched_at = target.campsites_fetched_at
        metadata_due = self._metadata_due(target, now)
        late = metadata_due and target.last_checked_at is not None  # it went without once: now it goes first
        if late:
            fetched_at = self._metadata(target, now) or fetched_at
        fetched = self._documents.months(target.campground_id, wanted)
        if fetched is None:
            self._give_back(target, token)
            return
        self._count(requests=fetched.requests)
        if metadata_due and not late and fetched.error is None:
            fetched_at = self._metadata(target, now) or fetched_at
        if fetched.error is not None:
            self._failed(target, token, fetched.error, now)
            return
        found = Found(token, fetched.began, fingerprint_of(fetched, fetched_at))
        if is_unchanged(self.deps, target, found):
            self._succeeded(target, Recorded(), now)
            return
        try:
            answers = self._documents.read(fetched)
        except ProviderError as error:
            self._failed(target, token, error.category, now)
            return
        if all(answer.blank for answer in answers):
            self._failed(target, token, CheckError.BLANK_ANSWER, now)
            return
        oddities = sum((Counter(answer.oddities) for answer in answers), Counter[str]())
        if oddities:
            log.info("answer had oddities", extra={"target_id": str(target.id), **oddities})
        self._succeeded(target, record(self.deps, target, found, answers), now)

    def _months(self, target: Target) -> list[date]:
        return months(max(target.start_date, self.deps.clock().date()), target.end_date)

    def _metadata_due(self, target: Target, now: datetime) -> bool:
        """Missing or a day old, and not refused just now."""
        fetched, tried = target.campsites_fetched_at, target.campsites_tried_at
        retry = METADATA_RETRY * timedelta(seconds=self.deps.settings.check_interval)
        return (fetched is None or fetched <= now - METADATA_AGE) and (tried is None or tried <= now - retry)

    def _lease(self, target: Target, requests: int, now: datetime) -> UUID | None:
        """Take the target for as long as its check can last; None when another process was quicker."""
        token = uuid4()
        longest = timedelta(seconds=self.deps.settings.fetch_deadline) * requests
        until = min(now + longest, self.until) + LEASE_MARGIN
        parameters = {"target": target.id, "listed": target.last_attempt_at, "now": now, "token": token, "until": until}
        with self.deps.database.transaction() as connection:
            return token if connection.execute(_lease(), parameters).rowcount else None

    def _give_back(self, target: Target, token: UUID) -> None:
        """The budget is spent: the target stays due and keeps its place, and so does everything after it."""
        statement = (
            update(unique_targets)
            .where(unique_targets.c.id == target.id, unique_targets.c.lease_token == token)
            .values(lease_token=None, lease_until=None, last_attempt_at=target.last_attempt_at)
        )
        with self.deps.database.transaction() as connection:
            connection.execute(statement)
        with self._lock:
            self._closed = True
            self.unavailable = self.unavailable or self._pace.is_open()
            self.counts["targets_skipped"] += 1

    def _metadata(self, target: Target, now: datetime) -> datetime | None:
        """Fetch campsite metadata if the budget allows, and give back when; a failure costs knowledge alone."""

        def keep(metadata: CampsiteMetadata | None) -> datetime | None:
            with self.deps.database.transaction() as connection:
                if metadata is not None:
                    remember_metadata(connection, target.provider, target.campground_id, metadata, now)
                    return now
                connection.execute(
                    update(campgrounds)
                    .where(
                        campgrounds.c.provider == target.provider, campgrounds.c.campground_id == target.campground_id
                    )
                    .values(campsites_tried_at=now)
                )
            return None

        fetched_at, requests = self._documents.campsites(target.campground_id, keep)
        self._count(requests=requests)
        return fetched_at

    def _succeeded(self, target: Target, recorded: Recorded | None, now: datetime) -> None:
        name = target.campground_name or f"campground {target.campground_id}"
        if recorded is None:
            log.info("check was discarded: another process was quicker", extra={"target_id": str(target.id)})
            self._count(targets_skipped=1)
            self._remember(target, now, "discarded")
            return
        self._count(targets_checked=1, openings=recorded.openings, intents=recorded.intents)
        self._remember(target, now, "success")
        if recorded.openings:
            nights = "1 new open night" if recorded.openings == 1 else f"{recorded.openings} new open nights"
            log.info("found %s at %s", nights, name, extra={"target_id": str(target.id)})
        if recorded.intents and self.deps.wake is not None:
            try:
                self.deps.wake()
            except Exception:  # the schedule delivers all the same
                log.exception("could not wake drain")

    def _failed(self, target: Target, token: UUID, error: CheckError, now: datetime) -> None:
        """Remember the failure and leave the target alone for a while; results and last success stay as they are."""
        backoff = timedelta(seconds=self.deps.settings.check_interval) * 2 ** min(target.failures, 10)
        t = unique_targets.c
        statement = (
            update(unique_targets)
            .where(t.id == target.id, t.lease_token == token)
            .values(
                lease_token=None,
                lease_until=None,
                failures=t.failures + 1,
                failing_since=func.coalesce(t.failing_since, now),
                error_category=error.value,
                retry_at=self.deps.clock() + min(LONGEST_BACKOFF, backoff),
            )
        )
        with self.deps.database.transaction() as connection:
            connection.execute(statement)
        self._count(targets_failed=1)
        self._remember(target, now, "failed", error)
        log.warning("check failed", extra={"target_id": str(target.id), "error_category": error.value})

    def _remember(self, target: Target, started: datetime, outcome: str, error: CheckError | None = None) -> None:
        attempt = JobAttempt(
            job_id=uuid5(target.id, str(target.last_checked_at)),  # the same until a check succeeds
            kind="check",
            attempt=target.failures + 1,
            started_at=started,
            finished_at=self.deps.clock(),
            outcome=outcome,
            error_category=error.value if error else None,
            provider=target.provider,
            target_id=target.id,
        )
        self.deps.runtime.add(attempt)
        with self._lock:
            self.history.append(attempt)

    def _count(self, **counts: int) -> None:
        with self._lock:
            self.counts.update(counts)


@lru_cache
def _lease() -> Update:
    """Built once. Nobody has leased or tried the target since it was listed."""
    t = unique_targets.c
    now = bindparam("now", type_=t.last_attempt_at.type)
    return (
        update(unique_targets)
        .where(
            t.id == bindparam("target", type_=t.id.type),
            or_(t.lease_until.is_(None), t.lease_until <= now),
            t.last_attempt_at.is_not_distinct_from(bindparam("listed", type_=t.last_attempt_at.type)),
        )
        .values(
            lease_token=bindparam("token", type_=t.lease_token.type),
            lease_until=bindparam("until", type_=t.lease_until.type),
            last_attempt_at=now,
        )
    )
