"""What Alembic runs, on the connection that `chalicelib.db.migrate` hands over, or on one for the `alembic` command."""

import logging

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection

from chalicelib.db.migrate import MigrationRefused, migrating
from chalicelib.db.tables import metadata
from chalicelib.settings import SettingsError, settings


def run() -> None:
    """Migrate, the caller's transaction around everything."""
    connection = context.config.attributes.get("connection")
    if connection is not None:
        _migrate(connection)
    elif context.is_offline_mode():
        raise CommandError("these migrations convert rows, so there is no --sql: run them on a database")
    else:
        _migrate_by_command()


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():  # none of its own: `migrating` has begun one
        context.run_migrations()


def _migrate_by_command() -> None:
    logging.basicConfig(format="%(message)s")
    logging.getLogger("alembic.runtime.migration").setLevel(logging.INFO)
    try:
        context.config.attributes["secret_keys"] = [key.get_secret_value() for key in settings().secret_keys]
        with migrating(settings().database_url.get_secret_value()) as connection:
            _migrate(connection)
    except (MigrationRefused, SettingsError) as error:
        raise CommandError(str(error)) from None


run()
