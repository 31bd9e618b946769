"""`channels …`: how people are reached."""

import sys
from uuid import UUID

import click

from chalicelib.cli.output import Failed, emit, json_option, table, utc, wired


def _only_standard_input(_: click.Context, __: click.Parameter, value: str) -> None:
    if value != "-":  # it is not repeated: it may be a key
        raise click.BadParameter("give '-' and the recipient on standard input; shells keep what is written here")


@click.group()
def channels() -> None:
    """How people are reached: add, list, test, remove, enable."""


@channels.command()
@click.option("--user", "email", required=True, metavar="EMAIL", help="Whose channel it is.")
@click.option("--kind", required=True, help="Which kind: pushover.")
@click.option(
    "--to",
    default="-",
    metavar="-",
    expose_value=False,
    callback=_only_standard_input,
    help="Where to: always '-', standard input. Shells keep what is written on the command line.",
)
@json_option
def add(email: str, kind: str) -> None:
    """Add a channel. Its recipient (for Pushover, the user key) is read from standard input and kept encrypted.

    No network is touched; `channels test` sends a message.
    """
    from chalicelib.accounts.channels import add
    from chalicelib.accounts.users import find
    from chalicelib.db.audit import OPERATOR

    with wired() as deps:
        user = find(deps, email)
        channel_id = add(deps, user.id, kind, _recipient(), by=OPERATOR)
    emit(
        {"id": str(channel_id), "kind": kind},
        f"added {kind} channel {channel_id}; try it: `channels test {channel_id}`",
    )


@channels.command("list")
@click.option("--user", "email", required=True, metavar="EMAIL", help="Whose channels.")
@json_option
def list_(email: str) -> None:
    """List a person's channels, without their recipients."""
    from chalicelib.accounts.channels import of_user
    from chalicelib.accounts.users import find

    with wired() as deps:
        found = of_user(deps, find(deps, email).id)
    emit(
        [channel.to_json() for channel in found],
        table(
            ("id", "kind", "state", "added"),
            (
                (
                    str(channel.id),
                    channel.kind,
                    "enabled" if channel.enabled else f"disabled ({channel.disabled_reason or 'by hand'})",
                    utc(channel.created_at),
                )
                for channel in found
            ),
            none="No channel yet: `channels add --user … --kind pushover`.",
        ),
    )


@channels.command()
@click.argument("channel_id", metavar="ID", type=click.UUID)
@json_option
def test(channel_id: UUID) -> None:
    """Send a real message and say what the service answered. Fails unless it was accepted."""
    from chalicelib.accounts.channels import send_test
    from chalicelib.channels.outcomes import OutcomeClass
    from chalicelib.db.audit import OPERATOR

    with wired() as deps:
        outcome = send_test(deps, channel_id, by=OPERATOR)
    told = {"outcome": outcome.kind.value, "category": outcome.category, "message_id": outcome.message_id}
    if outcome.kind is not OutcomeClass.ACCEPTED:
        raise Failed(f"not accepted: {outcome.category or outcome.kind}", **told)
    emit(told, f"accepted{f' as {outcome.message_id}' if outcome.message_id else ''}")


@channels.command()
@click.argument("channel_id", metavar="ID", type=click.UUID)
@json_option
def remove(channel_id: UUID) -> None:
    """Forget a channel and its recipient."""
    from chalicelib.accounts.channels import remove
    from chalicelib.db.audit import OPERATOR

    with wired() as deps:
        remove(deps, channel_id, by=OPERATOR)
    emit({"id": str(channel_id)}, f"removed channel {channel_id}")


@channels.command()
@click.argument("channel_id", metavar="ID", type=click.UUID)
@json_option
def enable(channel_id: UUID) -> None:
    """Use a channel again that was disabled after refusals."""
    from chalicelib.accounts.channels import enable
    from chalicelib.db.audit import OPERATOR

    with wired() as deps:
        enable(deps, channel_id, by=OPERATOR)
    emit({"id": str(channel_id)}, f"enabled channel {channel_id}")


def _recipient() -> str:
    """What is typed without an echo, or the first line of what is piped in."""
    if sys.stdin.isatty():
        return str(click.prompt("Recipient (it is not shown)", hide_input=True, err=True)).strip()
    recipient = sys.stdin.readline(4096).strip()
    if not recipient:
        raise click.UsageError("nothing came on standard input: pipe the recipient in")
    return recipient
