"""The notification outbox: one row for each campsite that a person is to be told of.

Revision: ef2486672984, after 20250310_base. Other installations stand on it: it is never edited again, and a test
holds this file to its hash.
"""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError
from sqlalchemy.dialects import postgresql

revision = "ef2486672984"
down_revision = "20250310_base"
branch_labels = None
depends_on = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create notification_outbox."""
    op.create_table(
        "notification_outbox",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("detection_id", sa.Uuid, nullable=False),
        sa.Column("user_id", sa.Uuid),
        sa.Column("scan_id", sa.Uuid),
        sa.Column("target_id", sa.Uuid),
        sa.Column("campsite_id", sa.String(128), nullable=False),
        sa.Column("payload", Json, nullable=False),
        sa.Column("status", sa.String(20), nullable=False, server_default="pending"),
        sa.Column("attempt_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("next_attempt_at", Moment, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("finished_at", Moment),
        sa.Column("error_category", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_outbox")),
        sa.UniqueConstraint(
            "detection_id",
            "scan_id",
            "campsite_id",
            name=op.f("uq_notification_outbox_detection_id_scan_id_campsite_id"),
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_notification_outbox_user_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["scan_id"], ["user_scans.id"], name=op.f("fk_notification_outbox_scan_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["target_id"], ["unique_targets.id"], name=op.f("fk_notification_outbox_target_id"), ondelete="SET NULL"
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'sending', 'retry', 'sent', 'skipped', 'failed')",
            name=op.f("ck_notification_outbox_status"),
        ),
        sa.CheckConstraint("attempt_count >= 0", name=op.f("ck_notification_outbox_attempt_count")),
    )
    op.create_index(
        op.f("ix_notification_outbox_status_next_attempt_at"), "notification_outbox", ["status", "next_attempt_at"]
    )
    op.create_index(
        op.f("ix_notification_outbox_finished_at"),
        "notification_outbox",
        ["finished_at"],
        sqlite_where=sa.text("finished_at IS NOT NULL"),
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )


def downgrade() -> None:
    """Drop it, if it is empty."""
    if op.get_bind().execute(sa.text("SELECT 1 FROM notification_outbox LIMIT 1")).first():
        raise CommandError("notification_outbox holds rows, which would be lost")
    op.drop_table("notification_outbox")
