from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib import settings, wiring


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """As in a process that has just begun: no settings read, no history, nothing in the folder."""
    monkeypatch.chdir(tmp_path)
    forget()
    yield
    forget()


def forget() -> None:
    wiring.forget_process()
    settings.settings.cache_clear()


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, database_url: str, secret_keys: list[str]) -> str:
    """Settings that name a database at head; gives its address."""
    monkeypatch.setenv("SITEBELL_DATABASE_URL", database_url)
    monkeypatch.setenv("SITEBELL_SECRET_KEYS", ",".join(secret_keys))
    return database_url
