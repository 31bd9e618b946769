"""The catalogue knows more of a campground, may know no name of it yet, and keeps its campsites.

Revision: 20260615_catalog, after 20260420_channels.
"""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError
from sqlalchemy.dialects import postgresql

revision = "20260615_catalog"
down_revision = "20260420_channels"
branch_labels = None
depends_on = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
Moment = sa.DateTime(timezone=True)

NEW = ("time_zone", "reservable", "enabled", "campsites_fetched_at", "campsites_tried_at")


def upgrade() -> None:
    """Add the columns and campsites."""
    with op.batch_alter_table("campgrounds") as campgrounds:
        campgrounds.alter_column("name", existing_type=sa.String(300), nullable=True)
        campgrounds.add_column(sa.Column("time_zone", sa.String(64)))
        campgrounds.add_column(sa.Column("reservable", sa.Boolean))
        campgrounds.add_column(sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()))
        campgrounds.add_column(sa.Column("campsites_fetched_at", Moment))
        campgrounds.add_column(sa.Column("campsites_tried_at", Moment))
    op.create_table(
        "campsites",
        sa.Column("provider", sa.String(40), nullable=False),
        sa.Column("campground_id", sa.String(64), nullable=False),
        sa.Column("campsite_id", sa.String(128), nullable=False),
        sa.Column("campsite", Json, nullable=False),
        sa.PrimaryKeyConstraint("provider", "campground_id", "campsite_id", name=op.f("pk_campsites")),
        sa.ForeignKeyConstraint(
            ["provider", "campground_id"],
            ["campgrounds.provider", "campgrounds.campground_id"],
            name=op.f("fk_campsites_provider_campground_id"),
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Drop them, if they hold nothing. Campsites count for nothing: they are asked for again every day."""
    if (
        op.get_bind()
        .execute(
            sa.text(
                "SELECT 1 FROM campgrounds"
                " WHERE name IS NULL OR time_zone IS NOT NULL OR reservable IS NOT NULL OR NOT enabled LIMIT 1"
            )
        )
        .first()
    ):
        raise CommandError(
            "campgrounds holds what the old table has no room for: nameless ones, time zones, what is enabled"
        )
    op.drop_table("campsites")
    with op.batch_alter_table("campgrounds") as campgrounds:
        for column in NEW:
            campgrounds.drop_column(column)
        campgrounds.alter_column("name", existing_type=sa.String(300), nullable=False)
