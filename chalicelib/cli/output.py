"""What every command shares: `--json`, tables and times for people, and errors as one line instead of a traceback."""

import json
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from chalicelib.deps import Deps

_JSON = "sitebell.json"

Command = TypeVar("Command", bound=Callable[..., Any])
Wire = Callable[[], AbstractContextManager["Deps"]]
"""Gives the use cases' dependencies; click's context object may hold one in place of production's."""


def json_option(command: Command) -> Command:
    """Add `--json`, which `emit` and errors heed."""

    def note(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it
        context.meta[_JSON] = value

    return click.option(
        "--json", is_flag=True, expose_value=False, callback=note, help="Print the result as JSON, and nothing else."
    )(command)


def emit(value: Any, words: str | Iterable[str]) -> None:
    """Print a command's result: `value` as JSON where that was asked for, else the words, a line each."""
    if _wants_json():
        click.echo(json.dumps(value))
        return
    for line in [words] if isinstance(words, str) else words:
        click.echo(line)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, none: str) -> Generator[str]:
    """Lines of a table in columns, or the sentence `none` where there are no rows."""
    cells = [tuple(titles), *(tuple(row) for row in rows)]
    if len(cells) == 1:
        yield none
        return
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def utc(moment: datetime | None, *, otherwise: str = "-") -> str:
    """A moment for people: `2027-07-01 09:30:00 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment else otherwise


@contextmanager
def wired() -> Generator["Deps"]:
    """The use cases' dependencies: those of the context, else production's."""
    wire: Wire = click.get_current_context().obj or _production
    with ExitStack() as stack:
        with settling():
            deps = stack.enter_context(wire())
        yield deps


def _production() -> AbstractContextManager["Deps"]:
    from chalicelib import wiring
    from chalicelib.runtime import logs

    logs.set_up()
    return wiring.wired()


@contextmanager
def settling() -> Generator[None]:
    """Around what first uses a setting: what is wrong with it is said without its value, which may be a password."""
    from chalicelib.settings import SettingsError

    try:
        yield
    except (TypeError, ValueError) as error:
        told = str(error)
        if not told.startswith("SITEBELL_"):
            known = (
                told
                if told.startswith("sslmode")
                else "it looks like sqlite:///file or postgresql://user:password@host/name"
            )
            told = f"SITEBELL_DATABASE_URL cannot be used: {known}"
        raise SettingsError(told) from None


@contextmanager
def progress(label: str) -> Generator[Callable[[int, int], None]]:
    """Tell how far a long work is: a bar on a terminal, else a log line at every tenth."""
    if not sys.stderr.isatty():
        yield _logging(label)
        return
    with click.progressbar(length=1000, label=label, file=sys.stderr) as bar:
        yield lambda done, total: bar.update(1000 * min(done, total) // total - bar.pos) if total else None


def _logging(label: str) -> Callable[[int, int], None]:
    import logging

    log, told = logging.getLogger(__name__), -1

    def tell(done: int, total: int) -> None:
        nonlocal told
        tenths = 10 * done // total if total else 0
        if tenths > told:
            told = tenths
            log.info("%s: %d %%", label, 10 * tenths)

    return tell


class Root(click.Group):
    """The outermost group: what a use case says no with becomes one line on standard error, and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if isinstance(error, click.ClickException | click.exceptions.Exit | click.Abort):
                raise
            raise _failed(error) or _broken(error) from None


class Failed(click.ClickException):
    """A command could not do what it was asked; exit code 1. In JSON mode standard output says so too."""

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message)
        self.more = more
        self.in_json = _wants_json()

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"error: {self.message}", file=file, err=file is None)
        if self.in_json:
            click.echo(json.dumps({"error": self.message, **self.more}))


def _failed(error: Exception) -> Failed | None:
    """Errors of use cases, settings, database and file system as a sentence; None for what is a fault of the code."""
    from chalicelib.db.engine import NotAtHead
    from chalicelib.db.migrate import MigrationRefused
    from chalicelib.db.trouble import sentence_of
    from chalicelib.errors import Conflict, Refused
    from chalicelib.settings import SettingsError

    if isinstance(error, Conflict):
        return Failed(str(error), id=str(error.existing_id))
    if isinstance(error, Refused | SettingsError | NotAtHead | MigrationRefused):
        return Failed(str(error))
    if sentence := sentence_of(error):
        return Failed(sentence)
    if isinstance(error, OSError) and error.strerror:
        return Failed(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return None


def _broken(error: Exception) -> Failed:
    """A fault of the code: the log says where, without the exception's text, which may quote what is secret."""
    import logging

    from chalicelib.runtime import logs

    if not logging.getLogger().handlers:
        logs.set_up()
    logging.getLogger(__name__).error("a command broke", exc_info=error)
    return Failed(f"something is wrong in Sitebell itself ({type(error).__name__}); the log says where")


def _wants_json() -> bool:
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_JSON))
