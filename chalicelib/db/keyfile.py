"""The keys of an instance that was given none: a file that only its owner reads, made once."""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

from chalicelib.db.vault import new_key
from chalicelib.settings import SettingsError


def read_or_make(path: Path, *, make: bool) -> list[str]:
    """The keys in the file, one a line, newest first. Without a file: a new one with a fresh key, or none.

    Safe for two processes at once: both get the keys of whoever was first. Raises SettingsError for a file that cannot
    be read or holds nothing.
    """
    try:
        keys = _read(path)
        if keys is None and make:
            _make(path)
            keys = _read(path)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or 'cannot be used'}") from None
    if keys == []:
        raise SettingsError(f"{path} holds no key; what was encrypted with a lost one must be entered anew")
    return keys or []


def _read(path: Path) -> list[str] | None:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    return text.split()


def _make(path: Path) -> None:
    """Write it whole under another name, then link it into place; where another was quicker, leave it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = mkstemp(dir=path.parent, prefix=".secret_keys-")  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{new_key()}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        Path(temporary).unlink()
