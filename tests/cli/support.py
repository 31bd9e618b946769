"""Commands as processes of their own."""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from subprocess import CompletedProcess

ROOT = Path(__file__).resolve().parents[2]


def run_process(
    folder: Path, words: Iterable[object], *, stdin: str = "", env: Mapping[str, str]
) -> CompletedProcess[str]:
    """`env -i`, but for the way to the code; warnings are errors there too."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "chalicelib", *map(str, words)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), **env},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
