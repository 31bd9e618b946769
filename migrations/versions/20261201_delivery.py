"""Careful delivery: fences and proofs on outbox rows, each channel kind's breaker, and what campers were told.

Revision: 20261201_delivery, after 20261019_results.
"""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError
from sqlalchemy.dialects import postgresql

revision = "20261201_delivery"
down_revision = "20261019_results"
branch_labels = None
depends_on = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
Moment = sa.DateTime(timezone=True)

TERMINAL = "status IN ('sent', 'skipped', 'failed')"
REFERENCES = ("user_id", "scan_id", "target_id", "channel_id")
NEW = ("channel_id", "channel_kind", "told", "claim_token", "provider_message_id")


def upgrade() -> None:
    """Mend what the new CHECK would refuse, then add columns, indexes and tables."""
    op.execute(f"UPDATE notification_outbox SET finished_at = next_attempt_at WHERE {TERMINAL} AND finished_at IS NULL")  # noqa: S608
    op.execute(f"UPDATE notification_outbox SET finished_at = NULL WHERE NOT ({TERMINAL})")  # noqa: S608
    with op.batch_alter_table("notification_outbox") as outbox:
        outbox.add_column(sa.Column("channel_id", sa.Uuid))
        outbox.add_column(sa.Column("channel_kind", sa.String(20)))
        outbox.add_column(sa.Column("told", Json))
        outbox.add_column(sa.Column("claim_token", sa.Uuid))
        outbox.add_column(sa.Column("provider_message_id", sa.String(200)))
        outbox.create_foreign_key(
            op.f("fk_notification_outbox_channel_id"),
            "notification_channels",
            ["channel_id"],
            ["id"],
            ondelete="SET NULL",
        )
        outbox.create_check_constraint(
            op.f("ck_notification_outbox_finished"), f"(finished_at IS NOT NULL) = ({TERMINAL})"
        )
    for column in REFERENCES:
        op.create_index(op.f(f"ix_notification_outbox_{column}"), "notification_outbox", [column])
    op.create_index(
        op.f("ix_notification_outbox_due"),
        "notification_outbox",
        ["next_attempt_at", "id"],
        sqlite_where=sa.text("status IN ('pending', 'retry')"),
        postgresql_where=sa.text("status IN ('pending', 'retry')"),
    )
    _create_channel_states()
    _create_alert_history()


def downgrade() -> None:
    """Drop them, if they hold nothing. channel_states counts for nothing: the next sends find out anew."""
    connection = op.get_bind()
    if connection.execute(sa.text("SELECT 1 FROM alert_history LIMIT 1")).first():
        raise CommandError("alert_history holds what campers were told, which would be lost")
    used = " OR ".join(f"{column} IS NOT NULL" for column in NEW)
    if connection.execute(sa.text(f"SELECT 1 FROM notification_outbox WHERE {used} LIMIT 1")).first():  # noqa: S608
        raise CommandError("notification_outbox holds attempts whose tokens and proofs would be lost")

    op.drop_table("alert_history")
    op.drop_table("channel_states")
    op.drop_index(op.f("ix_notification_outbox_due"), "notification_outbox")
    for column in REFERENCES:
        op.drop_index(op.f(f"ix_notification_outbox_{column}"), "notification_outbox")
    with op.batch_alter_table("notification_outbox") as batch:
        batch.drop_constraint(op.f("ck_notification_outbox_finished"), type_="check")
        batch.drop_constraint(op.f("fk_notification_outbox_channel_id"), type_="foreignkey")
        for column in NEW:
            batch.drop_column(column)


def _create_channel_states() -> None:
    op.create_table(
        "channel_states",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("faults", sa.Integer, nullable=False, server_default="0"),
        sa.Column("backoff_seconds", sa.Integer, nullable=False, server_default="0"),
        sa.Column("parked_until", Moment),
        sa.Column("error_category", sa.String(64)),
        sa.PrimaryKeyConstraint("kind", name=op.f("pk_channel_states")),
    )


def _create_alert_history() -> None:
    op.create_table(
        "alert_history",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("user_id", sa.Uuid),
        sa.Column("scan_id", sa.Uuid),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("error_category", sa.String(64)),
        sa.Column("attempt_count", sa.Integer, nullable=False),
        sa.Column("nights", Json, nullable=False),
        sa.Column("finished_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_history")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_alert_history_user_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["scan_id"], ["user_scans.id"], name=op.f("fk_alert_history_scan_id"), ondelete="SET NULL"
        ),
    )
    op.create_index(op.f("ix_alert_history_user_id"), "alert_history", ["user_id"])
    op.create_index(op.f("ix_alert_history_finished_at"), "alert_history", ["finished_at"])
    op.create_index(op.f("ix_alert_history_scan_id_finished_at"), "alert_history", ["scan_id", "finished_at"])
