from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from chalicelib.db.keyfile import read_or_make
from chalicelib.settings import SettingsError


def test_of_many_at_once_all_get_the_keys_of_the_first(tmp_path: Path) -> None:
    start = Barrier(8)

    def get() -> list[str]:
        start.wait()
        return read_or_make(tmp_path / "new" / "secret_keys", make=True)

    with ThreadPoolExecutor(8) as pool:
        found = [future.result() for future in [pool.submit(get) for _ in range(8)]]
    assert found == [found[0]] * 8
    assert len(found[0]) == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["secret_keys"]


def test_nothing_is_made_where_that_is_not_asked_for(tmp_path: Path) -> None:
    assert read_or_make(tmp_path / "new" / "secret_keys", make=False) == []
    assert list(tmp_path.iterdir()) == []


def test_several_keys_come_newest_first(tmp_path: Path) -> None:
    (tmp_path / "secret_keys").write_text("new\n\nold\n")
    assert read_or_make(tmp_path / "secret_keys", make=True) == ["new", "old"]


def test_an_empty_file_is_not_filled_but_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_keys").write_text("\n")
    with pytest.raises(SettingsError, match="holds no key"):
        read_or_make(tmp_path / "secret_keys", make=True)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_keys").mkdir()
    with pytest.raises(SettingsError, match="secret_keys"):
        read_or_make(tmp_path / "secret_keys", make=True)
