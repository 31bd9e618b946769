"""`db …`: the schema."""

import click

from chalicelib.cli.output import emit, json_option, settling


@click.group()
def db() -> None:
    """The database's schema: upgrade, check."""


@db.command()
@json_option
def upgrade() -> None:
    """Bring the database to the schema of this version, or make it."""
    from chalicelib import wiring
    from chalicelib.db.engine import HEAD
    from chalicelib.db.migrate import current, upgrade
    from chalicelib.settings import settings

    url = settings().database_url.get_secret_value()
    with settling():
        current(url)
    upgrade(url, secret_keys=wiring.secret_keys(make=False))
    emit({"head": HEAD}, f"the database is at {HEAD}")


@db.command()
@json_option
def check() -> None:
    """Say whether the database is at the schema of this version; fails where it is not."""
    from contextlib import closing

    from chalicelib.db.engine import HEAD, Database
    from chalicelib.settings import settings

    with settling(), closing(Database(settings().database_url.get_secret_value())) as database:
        database.check_head()
    emit({"head": HEAD}, f"the database is at {HEAD}")
