"""Refreshes the catalogue: fetches the export and takes it over."""

from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from chalicelib.catalog.download import EXPORT_PATH, download
from chalicelib.catalog.ridb import Progress
from chalicelib.catalog.sync import SyncResult, sync
from chalicelib.db.engine import Database


def refresh(
    database: Database,
    client: httpx.Client,
    origin: str,
    now: datetime,
    *,
    downloading: Progress | None = None,
    taking_over: Progress | None = None,
) -> SyncResult:
    """Download the export from `origin` into a temporary folder, some 250 MB, and sync the catalogue with it.

    The two `progress` callbacks are told how far each part is. Raises ExportError; the catalogue is then as it was, or
    partly newer.
    """
    with TemporaryDirectory(prefix="sitebell-") as folder:
        file = Path(folder) / "ridb.zip"
        download(client, f"{origin}{EXPORT_PATH}", file, downloading)
        return sync(database, file, now, taking_over)
