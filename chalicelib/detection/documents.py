"""Documents: what a run fetched from one provider, each once, however many targets need it."""

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import date, datetime
from threading import Lock
from typing import Any

from chalicelib.detection.pace import Pace
from chalicelib.history import Clock
from chalicelib.providers.contract import CampsiteMetadata, CheckError, MonthDocument, Provider, ProviderError
from chalicelib.stays.openings import MonthAnswer


@dataclass(frozen=True, slots=True)
class Fetched:
    """The months of one target: documents in order, or why there are none.

    `began`: when the earliest of the fetches began. `requests`: how many were made for this target's sake.
    """

    documents: Sequence[MonthDocument]
    began: datetime
    requests: int
    error: CheckError | None = None


class Documents:
    """One provider's documents within one run; safe under threads. A document that failed is not asked for again."""

    def __init__(self, provider: Provider, pace: Pace, clock: Clock) -> None:
        self._provider = provider
        self._pace = pace
        self._clock = clock
        self._lock = Lock()
        self._begun: dict[Hashable, Future[Any]] = {}

    def months(self, campground_id: str, wanted: Sequence[date]) -> Fetched | None:
        """All the months wanted, drawing on the budget for those not fetched yet. None: budget or breaker says no."""
        keys = [(campground_id, month) for month in wanted]
        with self._lock:
            missing = [key for key in keys if key not in self._begun]
            if missing and not self._pace.take(len(missing)):
                return None
            for key in missing:
                self._begun[key] = Future()
        requests = 0
        for key in missing:
            if not self._pace.is_open():
                requests += 1
            self._fetch(key)
        outcomes = [self._begun[key].result() for key in keys]
        began = min(at for at, _ in outcomes)
        errors = [document for _, document in outcomes if not isinstance(document, MonthDocument)]
        if errors:
            known = [error for error in errors if error is not None]
            return Fetched((), began, requests, known[0]) if known else None
        return Fetched([document for _, document in outcomes], began, requests)

    def read(self, fetched: Fetched) -> list[MonthAnswer]:
        """What the documents say. Raises ProviderError: only here a challenge page shows, and feeds the breaker."""
        try:
            return [document.read() for document in fetched.documents]
        except ProviderError as error:
            self._pace.failed(error)
            raise

    def probe(self, campground_id: str, month: date) -> None:
        """Fetch one month for which the budget has been drawn on already."""
        key = (campground_id, month)
        self._begun[key] = Future()
        self._fetch(key, probing=True)

    def campsites(
        self, campground_id: str, keep: Callable[[CampsiteMetadata | None], datetime | None]
    ) -> tuple[datetime | None, int]:
        """Campsite metadata, if the budget allows: gives back what `keep` returned for it, and the requests made.

        `keep` is called once a run and campground, with None where the request failed.
        """
        key = ("campsites", campground_id)
        with self._lock:
            begun = self._begun.get(key)
            if begun is None and not self._pace.take(1):
                return None, 0
            future = begun or self._begun.setdefault(key, Future())
        if begun is not None:
            return begun.result(), 0
        try:
            future.set_result(keep(self._ask_campsites(campground_id)))
        except Exception as error:  # noqa: BLE001  # as in _fetch
            future.set_exception(error)
        return future.result(), 1

    def _ask_campsites(self, campground_id: str) -> CampsiteMetadata | None:
        try:
            metadata = self._provider.campsites(campground_id)
        except ProviderError as error:
            self._pace.failed(error)
            return None
        self._pace.answered()
        return metadata

    def _fetch(self, key: tuple[str, date], *, probing: bool = False) -> None:
        """Fill a document: (began, it), (began, why not), or (began, None) when the breaker opened before it."""
        future, began = self._begun[key], self._clock()
        try:
            if self._pace.is_open() and not probing:
                future.set_result((began, None))
                return
            try:
                document = self._provider.availability(*key)
                if probing:
                    document.read()
            except ProviderError as error:
                self._pace.failed(error)
                future.set_result((began, error.category))
                return
            self._pace.answered()
            future.set_result((began, document))
        except Exception as error:  # noqa: BLE001  # whoever waits for this document must hear of it; `result()` raises it again
            future.set_exception(error)
