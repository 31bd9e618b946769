"""Both databases, at head and empty, for the length of a block. PostgreSQL is the tests' own, without fsync."""

from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from chalicelib.db.migrate import upgrade
from chalicelib.db.vault import new_key
from tests.support import postgres


@contextmanager
def databases() -> Generator[dict[str, str]]:
    """URLs by the database's name."""
    key = new_key()

    def migrate(url: str) -> None:
        upgrade(url, secret_keys=[key])

    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="sitebell-bench-")))
        keeper = postgres.Keeper()
        stack.callback(keeper.stop)
        file = f"sqlite:///{folder / 'bench.db'}"
        migrate(file)
        worker = stack.enter_context(closing(postgres.Worker(keeper.folder, "bench", migrate)))
        yield {"SQLite": file, "PostgreSQL": worker.at_head()}
