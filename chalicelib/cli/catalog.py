"""`catalog …`: campgrounds by name."""

from dataclasses import asdict
from pathlib import Path

import click

from chalicelib.cli.output import emit, json_option, progress, table, wired


@click.group()
def catalog() -> None:
    """The catalogue of campgrounds: sync, search."""


@catalog.command()
@click.option(
    "--file",
    "file",
    metavar="ZIP",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An export that is here already; else it is downloaded (some 250 MB).",
)
@json_option
def sync(file: Path | None) -> None:
    """Take over the RIDB full export: recreation areas and campgrounds of Recreation.gov."""
    from chalicelib import wiring
    from chalicelib.catalog.sync import sync

    with wired() as deps, progress("taking the export over") as tell:
        if file is not None:
            result = sync(deps.database, file, deps.clock(), tell)
        else:
            with progress("downloading the export") as downloading:
                result = wiring.refresh_catalog(deps, downloading=downloading, taking_over=tell)
    told = asdict(result)
    emit(
        told,
        (f"{name.replace('_', ' ')}: {value}" for name, value in told.items() if value not in (0, {})),
    )


@catalog.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many at most.")
@json_option
def search(text: tuple[str, ...], limit: int) -> None:
    """Find campgrounds and recreation areas by name and place."""
    from chalicelib.catalog.search import search

    with wired() as deps:
        found = search(deps.database, " ".join(text), limit)
    emit(
        [asdict(item) for item in found],
        table(
            ("provider", "id", "what", "name", "where"),
            (
                (
                    item.provider,
                    item.entity_id,
                    item.kind.replace("_", " "),
                    item.name,
                    ", ".join(part for part in (item.place, item.state) if part),
                )
                for item in found
            ),
            none="Nothing found. Is the catalogue there? `catalog sync`; a scan can be added by id without it.",
        ),
    )
