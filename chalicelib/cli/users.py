"""`users …`: people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from chalicelib.cli.output import emit, json_option, table, utc, wired

if TYPE_CHECKING:
    from chalicelib.accounts.users import User
    from chalicelib.deps import Deps


@click.group()
def users() -> None:
    """People: add, list, suspend, restore, invite; their API tokens and passwords."""


@users.command()
@click.option("--email", required=True, help="The person's address.")
@click.option("--admin", is_flag=True, help="May administer this instance.")
@json_option
def add(email: str, *, admin: bool) -> None:
    """Add a person, who counts as invited."""
    from chalicelib.accounts.users import add

    with wired() as deps:
        user = add(deps, email, is_admin=admin)
    emit({"id": str(user.id), "email": user.email}, f"added {user.email} as user {user.id}")


@users.command("list")
@json_option
def list_() -> None:
    """List everybody."""
    with wired() as deps:
        found = list(_everybody(deps))
    emit(
        [user.to_json() for user in found],
        table(
            ("id", "email", "may", "invited", "added"),
            ((str(user.id), user.email, _may(user), utc(user.invited_at), utc(user.created_at)) for user in found),
            none="There is nobody yet: `users add --email …`.",
        ),
    )


@users.command()
@click.argument("email")
@json_option
def suspend(email: str) -> None:
    """Stop checking and telling for a person, until restored."""
    from chalicelib.accounts.users import find, suspend

    with wired() as deps:
        user = suspend(deps, find(deps, email).id)
    emit(user.to_json(), f"suspended {user.email}")


@users.command()
@click.argument("email")
@json_option
def restore(email: str) -> None:
    """Let a suspended person's scans go on."""
    from chalicelib.accounts.users import find, restore

    with wired() as deps:
        user = restore(deps, find(deps, email).id)
    emit(user.to_json(), f"restored {user.email}")


@users.command()
@click.argument("email")
@json_option
def invite(email: str) -> None:
    """Invite a person, which matters where SITEBELL_INVITE_ONLY is on."""
    from chalicelib.accounts.users import find, invite

    with wired() as deps:
        user = invite(deps, find(deps, email).id)
    emit(user.to_json(), f"{user.email} is invited since {utc(user.invited_at)}")


@users.command()
@click.argument("email")
@click.option("--name", default="", help="What it is for, to tell it from others.")
@click.option("--read-only", "kind", flag_value="read_only", help="It may look, and change nothing.")
@click.option("--service", "kind", flag_value="service", help="For other systems: it opens service routes alone.")
@json_option
def token(email: str, name: str, kind: str | None) -> None:
    """Make an API token for a person and show it this once."""
    from chalicelib.accounts.tokens import make
    from chalicelib.accounts.users import find
    from chalicelib.db.audit import OPERATOR

    with wired() as deps:
        made = make(deps, find(deps, email).id, name=name, kind=kind or "read_write", by=OPERATOR)
    emit({"id": str(made.token.id), "token": made.secret, "kind": made.token.kind}, made.secret)


@users.command()
@click.argument("email")
@click.password_option(help="Asked for, unless it is given here, where others can see it.")
@json_option
def password(email: str, password: str) -> None:
    """Give a person another password, and sign them out everywhere."""
    from chalicelib.accounts.passwords import set_password
    from chalicelib.accounts.users import find
    from chalicelib.db.audit import OPERATOR

    with wired() as deps:
        user = find(deps, email)
        set_password(deps, user.id, password, by=OPERATOR)
    emit(user.to_json(), f"{user.email} has another password, and must sign in anew")


def _everybody(deps: "Deps") -> Iterator["User"]:
    from chalicelib.accounts.users import page

    after = ""
    while found := page(deps, after=after):
        yield from found
        after = found[-1].email


def _may(user: "User") -> str:
    return ("administer" if user.is_admin else "scan") if user.scanning_enabled else "suspended"
