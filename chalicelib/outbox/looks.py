"""Looks: what the workers of one drain know of each other's search for a due row.

Under PostgreSQL a look passes over rows that another one holds just then. Most of these end up claimed; one whose kind
of channel turns out to be full is given back. So a look that finds nothing is the last word only when none beside it
gave a row back.
"""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition

from chalicelib.outbox.claim import KindFull


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One search for a due row. `since` is how many rows had been given back when it began."""

    since: int


class Looks:
    """The looks of one run. Safe under threads."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._under_way: set[Look] = set()
        self._given_back: list[str] = []  # kinds of channel
        self._stopped = False

    @contextmanager
    def one(self) -> Generator[Look]:
        """Around a search for a row, to the end of its transaction."""
        with self._changed:
            look = Look(len(self._given_back))
            self._under_way.add(look)
        full: str | None = None
        try:
            yield look
        except KindFull as error:
            full = error.kind
            raise
        finally:
            with self._changed:
                self._under_way.remove(look)
                if full is not None:
                    self._given_back.append(full)
                self._changed.notify_all()

    def worth_another(self, look: Look, full: Collection[str], longest: float) -> bool:
        """Whether a row of a kind that is not `full` came back that an ended, fruitless `look` may have missed.

        Waits for those looks that are under way now, so many seconds at most; for their sends it does not.
        """
        with self._changed:
            beside = self._under_way.copy()

            def came_back() -> bool:
                return any(kind not in full for kind in self._given_back[look.since :])

            self._changed.wait_for(lambda: self._stopped or came_back() or not beside & self._under_way, longest)
            return came_back() and not self._stopped

    def stop(self) -> None:
        """No look is worth another from now on, and nobody waits for one."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
