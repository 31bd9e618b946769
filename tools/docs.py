"""Pages made from the code: `make docs` writes them, and a test fails when one is stale.

Whole pages are listed in PAGES; parts of pages written by hand, between two marks there, in PARTS.
"""

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from sqlalchemy import Column, Table

from chalicelib.channels.outcomes import DeliveryErrorCategory, OutcomeClass
from chalicelib.cli.main import cli
from chalicelib.db import tables
from chalicelib.outbox import states
from chalicelib.outbox.states import LATE_ACCEPTANCE, MAX_ATTEMPTS, MOVES, TERMINAL, SkipReason, Status
from chalicelib.providers.contract import CheckError
from chalicelib.settings import PREFIX, Settings

ROOT = Path(__file__).parents[1]
PROGRAM = "python -m chalicelib"
HELP_WIDTH = 100
NOTE = "<!-- made from the code by `make docs`; change it there -->"


def made() -> dict[Path, str]:
    """Every file that is made, wholly or in part, as it should read now."""
    files = {ROOT / name: f"{NOTE}\n\n{page()}" for name, page in PAGES.items()}
    for (name, part), make in PARTS.items():
        path = ROOT / name
        files[path] = _with_part(files.get(path) or path.read_text("utf-8"), part, make())
    return files


def main() -> None:
    """Write what has changed, and name it."""
    for path, content in made().items():
        if not path.exists() or path.read_text("utf-8") != content:
            path.write_text(content, "utf-8")
            sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")


def _with_part(page: str, part: str, content: str) -> str:
    begin, end = f"<!-- {part}: made by `make docs` -->", f"<!-- end of {part} -->"
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"a page lacks its marks: {begin} … {end}")
    return f"{before}{begin}\n\n{content.strip()}\n\n{end}{after}"


# --- settings --------------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Every setting, with the values that it takes."""
    rows = (
        (f"`{PREFIX}{name.upper()}`", _values(field), _default(field), field.description or "")
        for name, field in Settings.model_fields.items()
    )
    return f"""# Settings

Sitebell reads its settings from environment variables, or from a file `.env` in the working directory (`NAME=value`, a
line each); a variable wins over the file. A value that cannot be used is refused at the start, by the variable's name.
An origin is `https://host` without a path; plain `http` is for this machine alone.

{_table(("Variable", "Values", "Default", "Meaning"), rows)}
"""


def settings_table() -> str:
    """The settings for README."""
    rows = (
        (f"`{PREFIX}{name.upper()}`", _default(field), field.description or "")
        for name, field in Settings.model_fields.items()
    )
    return _table(("Variable", "Default", "Meaning"), rows)


def _default(field: FieldInfo) -> str:
    default: object = field.default
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if default is None or default == ():
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _values(field: FieldInfo) -> str:
    """What a setting takes, from its type and bounds."""
    kind = str(field.annotation)
    names = (
        ("SecretStr", "secret"),
        ("_origin", "origin"),
        ("Literal", ", ".join(f"`{word}`" for word in re.findall(r"'(\w+)'", kind))),
        ("bool", "`true`, `false`"),
        ("int", "whole number"),
        ("float", "number"),
        ("str", "text"),
    )
    known = kind + " ".join(map(str, field.metadata))
    name = next(words for sign, words in names if sign in known)
    bounds = [
        f"{words} {bound:g}"
        for sign, words in (("ge", "from"), ("gt", "above"), ("le", "up to"), ("lt", "below"))
        for item in field.metadata
        if (bound := getattr(item, sign, None)) is not None
    ]
    return ", ".join((name, *bounds))


# --- commands --------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Every command with its help, as a terminal shows it."""
    found = list(_commands(cli, _context(cli, PROGRAM, None)))
    contents = "\n".join(
        f"{'  ' * (path.count(' '))}- [`{path}`](#{path.replace(' ', '-')}): {command.get_short_help_str(100)}"
        for path, command, _ in found
    )
    sections = "\n".join(
        f"\n{'###' if ' ' in path else '##'} {path}\n\n```text\n{_help(command, context)}\n```\n"
        for path, command, context in found
    )
    return f"""# Commands

```text
{_help(cli, _context(cli, PROGRAM, None))}
```

{contents}
{sections}"""


def _commands(
    group: click.Group, context: click.Context, path: str = ""
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.commands[name]
        own = _context(command, name, context)
        yield f"{path}{name}", command, own
        if isinstance(command, click.Group):
            yield from _commands(command, own, f"{path}{name} ")


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    size = {"terminal_width": HELP_WIDTH, "max_content_width": HELP_WIDTH}
    return click.Context(command, info_name=name, parent=parent, color=False, **{**command.context_settings, **size})


def _help(command: click.Command, context: click.Context) -> str:
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


# --- states and error categories -------------------------------------------------------------------------------------


def states_page() -> str:
    """The states of an outbox row, and the whole list of error categories."""
    said = _comments(states)
    before, after = LATE_ACCEPTANCE
    arrows = [
        f"    [*] --> {Status.PENDING}",
        *(f"    {source} --> {to}" for source in MOVES for to in Status if to in MOVES[source]),
        f"    {before} --> {after}: late acceptance",
        *(f"    {status} --> [*]" for status in Status if status in TERMINAL),
    ]
    diagram = "\n".join(arrows)
    meanings = _table(("State", "Meaning"), ((f"`{status}`", said[status.name]) for status in Status))
    ours = [
        value
        for name, value in vars(states).items()
        if name.isupper() and type(value) is str  # those that no channel gives
    ]
    return f"""# States and error categories

## An alert in the outbox

Detect writes an alert as `{Status.PENDING}`; drain moves it on. Every move is one `UPDATE`, guarded by the state that
it comes from, in [`chalicelib/outbox/states.py`](../chalicelib/outbox/states.py). What is not drawn here is refused.

```mermaid
stateDiagram-v2
{diagram}
```

{meanings}

An attempt carries a token of its own. The late acceptance is the one move that needs it: a send that was given up at
its deadline, and was accepted after all, settles a row that waits for a retry, unless a newer attempt has begun. There
are at most {MAX_ATTEMPTS} attempts, interrupted ones counted.

## Error categories

Why a check failed, why nothing was sent, or why an attempt was not accepted. These words are all that is stored, logged
and shown of an error: never an exception's text, which may quote what is secret.

### A check failed

{_categories(CheckError)}

### An alert was skipped

{_categories(SkipReason)}

### An attempt ended without acceptance

In `{Status.RETRY}` and `{Status.FAILED}`.

{_categories(DeliveryErrorCategory, ours)}

### How sure an attempt's end is

A channel puts each end of an attempt into one of these classes.

{_categories(OutcomeClass)}
"""


def _categories(enum: type[StrEnum], more: Iterable[str] = ()) -> str:
    """Members of an enum: a table where they have comments, else a line."""
    said = _comments(_module_of(enum), enum.__name__)
    if any(said.values()):
        rows = [*((f"`{member}`", said[member.name]) for member in enum), *((f"`{value}`", "") for value in more)]
        return _table(("Category", "Meaning"), rows)
    return " · ".join(f"`{value}`" for value in (*enum, *more))


def _module_of(enum: type[StrEnum]) -> ModuleType:
    return import_module(enum.__module__)


def _comments(module: ModuleType, class_name: str = "Status") -> Mapping[str, str]:
    """The comment beside each member of a class, by the member's name; empty where there is none."""
    source = inspect.getsource(module)
    found = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == class_name)
    return {
        target.id: _comment(source.splitlines(), node.lineno, node.end_lineno)
        for node in found.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _comment(lines: Sequence[str], first: int, last: int | None) -> str:
    """What stands behind `#` on the last of these lines that has one."""
    said = [line.partition("  # ")[2] for line in lines[first - 1 : last]]
    return next((words.strip() for words in reversed(said) if words), "")


# --- the schema ------------------------------------------------------------------------------------------------------


def schema_page() -> str:
    """Every table with its columns, and what the source says beside them."""
    source = Path(str(tables.__file__)).read_text("utf-8")
    lines = source.splitlines()
    said: dict[tuple[str, str], str] = {}
    begins: dict[int, Table] = {}
    for table, node in _table_nodes(ast.parse(source)):
        begins[node.lineno] = table
        for call in node.args:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Column":
                name = ast.literal_eval(call.args[0])
                said[table.name, name] = _comment(lines, call.lineno, call.end_lineno)
    sections: list[str] = []
    for number, line in enumerate(lines, start=1):
        if heading := re.match(r"# --- (.+?) -+$", line):
            sections.append(f"\n## {heading[1].capitalize()}\n")
        if (table := begins.get(number)) is not None:
            sections.append(f"\n### {table.name}\n\n{_columns(table, said)}\n")
    references = {
        f"    {key.column.table.name} ||--o{{ {table.name} : {key.parent.name}"
        for table in tables.metadata.sorted_tables
        for key in table.foreign_keys
        if len(key.constraint.columns if key.constraint else ()) == 1
    }
    diagram = "\n".join(sorted(references))
    return f"""# Schema

The same on SQLite and PostgreSQL. Times are UTC. `python -m chalicelib db upgrade` makes it, or brings an older
database to it; what changes it is in [`migrations/versions`](../migrations/versions). The source is
[`chalicelib/db/tables.py`](../chalicelib/db/tables.py).

```mermaid
erDiagram
{diagram}
```
{"".join(sections)}"""


def _table_nodes(tree: ast.Module) -> Iterator[tuple[Table, ast.Call]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call = node.value
            if ast.unparse(call.func) == "Table":
                yield tables.metadata.tables[ast.literal_eval(call.args[0])], call


def _columns(table: Table, said: Mapping[tuple[str, str], str]) -> str:
    rows = (
        (f"`{column.name}`", _type(column), "null" if column.nullable else "", said.get((table.name, column.name), ""))
        for column in table.columns
    )
    return _table(("Column", "Type", "", "Meaning"), rows)


def _type(column: Column[Any]) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(column.type).__name__).lower()
    length = getattr(column.type, "length", None)
    words = {"utc date time": "UTC time", "json": "JSON", "uuid": "UUID"}.get(name, name)
    keys = ["primary key"] if column.primary_key else []
    keys += [f"→ `{key.column.table.name}`" for key in column.foreign_keys]
    return ", ".join((f"{words}({length})" if length else words, *keys))


# --- rooms -----------------------------------------------------------------------------------------------------------


def rooms() -> str:
    """The layers that `make lint` holds the code to, each room with the first sentence of what it says of itself."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers: list[str] = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    rows = ((str(number), *row) for number, row in enumerate(map(_layer, layers), start=1))
    return _table(("", "Rooms", "What is there"), rows)


def _layer(layer: str) -> tuple[str, str]:
    names = [name.strip() for name in layer.split("|")]
    return "<br>".join(f"`{name}`" for name in names), "<br>".join(map(_first_sentence, names))


def _first_sentence(room: str) -> str:
    doc = inspect.getdoc(import_module(f"chalicelib.{room}")) or ""
    return re.split(r"(?<=\.)\s|\n\n", doc)[0].replace("\n", " ")


# --- all of it -------------------------------------------------------------------------------------------------------


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/settings.md": settings_page,
    "docs/commands.md": commands_page,
    "docs/states.md": states_page,
    "docs/schema.md": schema_page,
}
PARTS: Mapping[tuple[str, str], Callable[[], str]] = {
    ("README.md", "settings"): settings_table,
    ("docs/architecture.md", "rooms"): rooms,
}

if __name__ == "__main__":
    main()
