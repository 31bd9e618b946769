"""Fetches the RIDB full export into a file: streamed, picked up again where a connection broke, whole or not at all."""

from collections.abc import Mapping
from pathlib import Path

import httpx

from chalicelib.catalog.ridb import ExportError, ExportProblem, Progress

EXPORT_PATH = "/downloads/RIDBFullExport_V1_CSV.zip"
"""Below settings.ridb_url. The same catalogue as the JSON export, packed: some 250 MB instead of 570."""

TRIES = 5  # connections for one file
TIMEOUT = 30.0  # seconds to connect, and for each piece


def download(client: httpx.Client, url: str, to: Path, progress: Progress | None = None) -> None:
    """Fetch `url` into the file `to`, which is replaced when all of it is here and left alone otherwise.

    A broken connection is taken up again where it broke, if the site can tell that the file is still the same one.
    `progress` is told the bytes so far and of how many (0: the site does not say). Raises ExportError.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    part = to.with_name(f"{to.name}.part")
    try:
        _fetch(client, url, part, progress)
        part.replace(to)
    except httpx.HTTPError as error:
        raise _failed("the site's answer made no sense") from error
    except OSError as error:
        raise _failed("the disk would not take it") from error
    finally:
        part.unlink(missing_ok=True)


def _fetch(client: httpx.Client, url: str, part: Path, progress: Progress | None) -> None:
    validator: str | None = None
    with part.open("wb") as file:
        for tries_left in reversed(range(TRIES)):
            headers = _headers(validator, file.tell())
            try:
                with client.stream("GET", url, headers=headers, follow_redirects=True, timeout=TIMEOUT) as response:
                    if not _continues(response, file.tell()):
                        _refuse(response)
                        validator = _validator(response.headers)
                        file.seek(0)
                        file.truncate()
                    left = response.headers.get("Content-Length", "")
                    total = file.tell() + int(left) if left.isdecimal() else 0
                    for chunk in response.iter_raw():
                        file.write(chunk)
                        if progress:
                            progress(file.tell(), total)
                    return
            except httpx.TransportError as error:
                if not tries_left:
                    raise _failed("the connection broke again and again") from error


def _headers(validator: str | None, offset: int) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity"}
    if validator and offset:
        headers |= {"Range": f"bytes={offset}-", "If-Range": validator}
    return headers


def _validator(headers: Mapping[str, str]) -> str | None:
    """What says that it is still the same file. A weak tag may not be used for parts."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else None


def _continues(response: httpx.Response, offset: int) -> bool:
    content_range: str = response.headers.get("Content-Range", "")
    return response.status_code == 206 and content_range.startswith(f"bytes {offset}-")


def _refuse(response: httpx.Response) -> None:
    if response.status_code != 200:
        raise _failed(f"the site answered {response.status_code}")


def _failed(why: str) -> ExportError:
    return ExportError(ExportProblem.DOWNLOAD_FAILED, f"the export could not be downloaded: {why}")
