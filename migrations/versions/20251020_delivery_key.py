"""The two lines become one, and an intent's identity may be something else than a campsite: `delivery_key`.

Revision: 4d64e0e4ae18, after ef2486672984 and 09367969f1a4.
"""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "4d64e0e4ae18"
down_revision = ("ef2486672984", "09367969f1a4")
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename campsite_id to delivery_key, and the unique constraint with it."""
    _rename("campsite_id", "delivery_key")


def downgrade() -> None:
    """The old name again, if every key is a campsite's id."""
    if (
        op.get_bind()
        .execute(sa.text("SELECT 1 FROM notification_outbox WHERE delivery_key = 'summary' LIMIT 1"))
        .first()
    ):
        raise CommandError("notification_outbox holds summaries, which the old column has no word for")
    _rename("delivery_key", "campsite_id")


def _rename(old: str, new: str) -> None:
    """In two steps: within one batch, SQLite's copy knows a renamed column by its old name only."""
    with op.batch_alter_table("notification_outbox") as outbox:
        outbox.drop_constraint(op.f(f"uq_notification_outbox_detection_id_scan_id_{old}"), type_="unique")
        outbox.alter_column(old, new_column_name=new, existing_type=sa.String(128), existing_nullable=False)
    with op.batch_alter_table("notification_outbox") as outbox:
        outbox.create_unique_constraint(
            op.f(f"uq_notification_outbox_detection_id_scan_id_{new}"), ["detection_id", "scan_id", new]
        )
