from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from chalicelib.catalog.download import TRIES, download
from chalicelib.catalog.ridb import ExportError, ExportProblem

CONTENT = bytes(range(256)) * 4096
URL = "https://ridb.example/downloads/export.zip"

Site = Callable[[httpx.Request], httpx.Response]


class Body(httpx.SyncByteStream):
    """Bytes that come in pieces and may break off."""

    def __init__(self, content: bytes, *, breaks: bool = False) -> None:
        self.content, self.breaks = content, breaks

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self.content), 1000):
            yield self.content[start : start + 1000]
        if self.breaks:
            raise httpx.ReadError("broken off")


def answer(content: bytes, *, status: int = 200, breaks: bool = False, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=named, stream=Body(content, breaks=breaks))


def fetch(site: Site, to: Path, told: list[tuple[int, int]] | None = None) -> None:
    with httpx.Client(transport=httpx.MockTransport(site)) as client:
        download(client, URL, to, (lambda done, total: told.append((done, total))) if told is not None else None)


def test_a_file_is_fetched_whole_into_a_new_folder(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    to = tmp_path / ".data" / "export.zip"
    fetch(lambda _: answer(CONTENT, content_length=str(len(CONTENT))), to, told)
    assert to.read_bytes() == CONTENT
    assert [path.name for path in to.parent.iterdir()] == ["export.zip"]
    assert told == sorted(told)
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_a_site_that_does_not_tell_the_length_is_no_trouble(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    fetch(lambda _: answer(CONTENT), tmp_path / "export.zip", told)
    assert told[-1] == (len(CONTENT), 0)


def test_a_broken_connection_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    asked: list[tuple[str | None, str | None]] = []

    def site(request: httpx.Request) -> httpx.Response:
        asked.append((request.headers.get("range"), request.headers.get("if-range")))
        if len(asked) == 1:
            return answer(CONTENT[:5000], breaks=True, etag='"one"', content_length=str(len(CONTENT)))
        rest = CONTENT[5000:]
        return answer(
            rest,
            status=206,
            content_length=str(len(rest)),
            content_range=f"bytes 5000-{len(CONTENT) - 1}/{len(CONTENT)}",
        )

    told: list[tuple[int, int]] = []
    fetch(site, tmp_path / "export.zip", told)
    assert (tmp_path / "export.zip").read_bytes() == CONTENT
    assert asked == [(None, None), ("bytes=5000-", '"one"')]
    assert {total for _, total in told} == {len(CONTENT)}


@pytest.mark.parametrize("etag", ['"other"', "", 'W/"weak"'])
def test_a_file_that_may_have_changed_is_fetched_anew(tmp_path: Path, etag: str) -> None:
    answers = [
        answer(b"old" * 1000, breaks=True, etag=etag),
        answer(CONTENT, etag='"new"'),
    ]
    fetch(lambda _: answers.pop(0), tmp_path / "export.zip")
    assert (tmp_path / "export.zip").read_bytes() == CONTENT


def test_the_wrong_part_is_refused(tmp_path: Path) -> None:
    answers = [
        answer(CONTENT[:5000], breaks=True, etag='"one"'),
        answer(CONTENT[1:], status=206, content_range="bytes 1-9/10"),
    ]
    with pytest.raises(ExportError, match="answered 206"):
        fetch(lambda _: answers.pop(0), tmp_path / "export.zip")


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no route", request=request)


REFUSALS: list[tuple[str, Site, str]] = [
    ("missing", lambda _: answer(b"", status=404), "the site answered 404"),
    ("busy", lambda _: answer(b"<html>", status=503), "the site answered 503"),
    ("unreachable", unreachable, "the connection broke again and again"),
    ("always broken", lambda _: answer(CONTENT, breaks=True), "the connection broke again and again"),
    ("round in circles", lambda _: answer(b"", status=302, location=URL), "made no sense"),
]


@pytest.mark.parametrize(("site", "why"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_a_failure_is_told_and_leaves_the_old_file_alone(tmp_path: Path, site: Site, why: str) -> None:
    to = tmp_path / "export.zip"
    to.write_bytes(b"before")
    with pytest.raises(ExportError, match=why) as caught:
        fetch(site, to)
    assert caught.value.problem is ExportProblem.DOWNLOAD_FAILED
    assert to.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["export.zip"]


def test_it_does_not_try_for_ever(tmp_path: Path) -> None:
    asked = 0

    def site(_: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        return answer(b"", breaks=True)

    with pytest.raises(ExportError):
        fetch(site, tmp_path / "export.zip")
    assert asked == TRIES


def test_a_disk_that_takes_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "export.zip").mkdir()
    with pytest.raises(ExportError, match="the disk would not take it"):
        fetch(lambda _: answer(CONTENT), tmp_path / "export.zip")
