"""`outbox …`: what is to be told, and what became of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

import click

from chalicelib.cli.output import emit, json_option, table, utc, wired

if TYPE_CHECKING:
    from chalicelib.deps import Deps
    from chalicelib.outbox.reading import OutboxRow

STATUSES = ("pending", "sending", "retry", "sent", "skipped", "failed")


@click.group()
def outbox() -> None:
    """What is to be told, and what became of it: list, show."""


@outbox.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only rows of this status.")
@json_option
def list_(status: str | None) -> None:
    """List the outbox, oldest first. Finished rows go after a day."""
    with wired() as deps:
        rows = list(_all(deps, status))
    emit(
        [row.to_json() for row in rows],
        table(
            ("id", "status", "attempts", "tells", "reason", "next attempt", "finished"),
            (
                (
                    str(row.id),
                    row.status,
                    str(row.attempt_count),
                    row.delivery_key,
                    row.error_category or "-",
                    "-" if row.finished_at else utc(row.next_attempt_at),
                    utc(row.finished_at),
                )
                for row in rows
            ),
            none="There is nothing to tell.",
        ),
    )


@outbox.command()
@click.argument("row_id", metavar="ID", type=click.UUID)
@json_option
def show(row_id: UUID) -> None:
    """Show one row whole."""
    from chalicelib.outbox.reading import show

    with wired() as deps:
        detail = show(deps, row_id)
    row, payload = detail.row, detail.payload
    message = str(payload.get("message", "")).splitlines()
    emit(
        detail.to_json(),
        [
            f"{row.status}: {payload.get('title', '')}",
            *(f"  {line}" for line in message),
            f"  {payload.get('booking_url', '')}",
            f"attempts      {row.attempt_count}",
            f"reason        {row.error_category or '-'}",
            f"created       {utc(row.created_at)}",
            f"next attempt  {'-' if row.finished_at else utc(row.next_attempt_at)}",
            f"finished      {utc(row.finished_at)}",
            f"channel       {detail.channel_kind or '-'}",
            f"accepted as   {detail.provider_message_id or '-'}",
            *(f"{name.removesuffix('_id').ljust(12)}  {value or '-'}" for name, value in detail.references.items()),
        ],
    )


def _all(deps: "Deps", status: str | None) -> Iterator["OutboxRow"]:
    from chalicelib.outbox.reading import page

    after = None
    while rows := page(deps, status=status, after=after, limit=500):
        yield from rows
        after = rows[-1].created_at, rows[-1].id
