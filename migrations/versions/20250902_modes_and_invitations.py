"""The main line: scan modes, invitations, and users who may not scan.

Revision: 09367969f1a4, after 20250310_base.
"""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "09367969f1a4"
down_revision = "20250310_base"
branch_labels = None
depends_on = None

Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the columns. Who is here stays allowed, and what is watched goes on telling each campsite by itself."""
    with op.batch_alter_table("users") as users:
        users.add_column(sa.Column("scanning_enabled", sa.Boolean, nullable=False, server_default=sa.true()))
        users.add_column(sa.Column("invited_at", Moment))
    op.execute("UPDATE users SET invited_at = created_at")

    with op.batch_alter_table("user_scans") as scans:
        scans.add_column(sa.Column("mode", sa.String(10), nullable=False, server_default="summary"))
        scans.create_check_constraint(op.f("ck_user_scans_mode"), "mode IN ('summary', 'direct')")
    op.execute("UPDATE user_scans SET mode = 'direct'")


def downgrade() -> None:
    """Drop the columns, if they say nothing that `upgrade` would not say again."""
    connection = op.get_bind()
    if connection.execute(
        sa.text(
            "SELECT 1 FROM users WHERE NOT scanning_enabled OR invited_at IS NULL OR invited_at <> created_at LIMIT 1"
        )
    ).first():
        raise CommandError("who is invited and who may scan would be lost")
    if connection.execute(sa.text("SELECT 1 FROM user_scans WHERE mode <> 'direct' LIMIT 1")).first():
        raise CommandError("the modes of scans would be lost")

    with op.batch_alter_table("user_scans") as scans:
        scans.drop_constraint(op.f("ck_user_scans_mode"), type_="check")
        scans.drop_column("mode")
    with op.batch_alter_table("users") as users:
        users.drop_column("invited_at")
        users.drop_column("scanning_enabled")
