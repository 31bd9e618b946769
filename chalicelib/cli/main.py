"""Every command, by its name."""

import click

from chalicelib.cli import catalog, channels, database, keys, local, outbox, run, scans, users
from chalicelib.cli.output import Root


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Sitebell watches campgrounds that are booked out and tells people when a site opens up.

    Settings come from SITEBELL_* environment variables, or from a .env file. Exit codes: 0 done, 1 failed, 2 usage.
    """


for command in (
    users.users,
    channels.channels,
    scans.scans,
    run.run,
    outbox.outbox,
    database.db,
    catalog.catalog,
    keys.keys,
    local.serve,
    local.demo,
):
    cli.add_command(command)
