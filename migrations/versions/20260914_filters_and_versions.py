"""More filters of a scan, and which version of its wishes it has been told for.

Revision: 20260914_filters, after 20260803_pace.
"""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError
from sqlalchemy.dialects import postgresql

revision = "20260914_filters"
down_revision = "20260803_pace"
branch_labels = None
depends_on = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
Moment = sa.DateTime(timezone=True)

LISTS = ("loops_wanted", "loops_unwanted", "campsites_wanted", "campsites_unwanted", "arrival_weekdays")
VALUES = ("people", "equipment", "equipment_length")
VERSIONS = ("version", "told_version", "told_at")


def upgrade() -> None:
    """Add the columns. A scan whose target was ever checked has been told: an upgrade tells nobody everything again."""
    with op.batch_alter_table("user_scans") as scans:
        scans.add_column(sa.Column("people", sa.Integer))
        scans.add_column(sa.Column("equipment", sa.String(60)))
        scans.add_column(sa.Column("equipment_length", sa.Integer))
        for column in LISTS:
            scans.add_column(sa.Column(column, Json, nullable=False, server_default=sa.text("'[]'")))
        scans.add_column(sa.Column("version", sa.Integer, nullable=False, server_default="1"))
        scans.add_column(sa.Column("told_version", sa.Integer, nullable=False, server_default="0"))
        scans.add_column(sa.Column("told_at", Moment))
    checked = "SELECT last_checked_at FROM unique_targets WHERE unique_targets.id = user_scans.target_id"
    op.execute(f"UPDATE user_scans SET told_at = ({checked})")  # noqa: S608
    op.execute("UPDATE user_scans SET told_version = 1 WHERE told_at IS NOT NULL")


def downgrade() -> None:
    """Drop them, if no scan uses one and none waits to be told."""
    used = [f"{column} IS NOT NULL" for column in VALUES] + [f"CAST({column} AS TEXT) <> '[]'" for column in LISTS]
    connection = op.get_bind()
    if connection.execute(sa.text(f"SELECT 1 FROM user_scans WHERE {' OR '.join(used)} LIMIT 1")).first():  # noqa: S608
        raise CommandError("user_scans holds filters that the old table has no room for")
    if connection.execute(
        sa.text(
            "SELECT 1 FROM user_scans JOIN unique_targets ON unique_targets.id = user_scans.target_id"
            " WHERE told_version < version AND last_checked_at IS NOT NULL LIMIT 1"
        )
    ).first():
        raise CommandError("scans wait to be told what is open, and would never be")
    with op.batch_alter_table("user_scans") as batch:
        for column in (*VERSIONS, *LISTS, *VALUES):
            batch.drop_column(column)
