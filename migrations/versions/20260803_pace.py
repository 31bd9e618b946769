"""How targets are checked: leases, back-off, and each provider's budget and breaker.

Revision: 20260803_pace, after 20260615_catalog.
"""

import sqlalchemy as sa
from alembic import op

revision = "20260803_pace"
down_revision = "20260615_catalog"
branch_labels = None
depends_on = None

Moment = sa.DateTime(timezone=True)

NEW = (
    "last_attempt_at",
    "failures",
    "failing_since",
    "error_category",
    "retry_at",
    "lease_token",
    "lease_until",
    "results_fingerprint",
)


def upgrade() -> None:
    """Add the columns and provider_states. A target's last success was its last attempt."""
    with op.batch_alter_table("unique_targets") as targets:
        targets.add_column(sa.Column("last_attempt_at", Moment))
        targets.add_column(sa.Column("failures", sa.Integer, nullable=False, server_default="0"))
        targets.add_column(sa.Column("failing_since", Moment))
        targets.add_column(sa.Column("error_category", sa.String(64)))
        targets.add_column(sa.Column("retry_at", Moment))
        targets.add_column(sa.Column("lease_token", sa.Uuid))
        targets.add_column(sa.Column("lease_until", Moment))
        targets.add_column(sa.Column("results_fingerprint", sa.String(64)))
    op.execute("UPDATE unique_targets SET last_attempt_at = last_checked_at")
    op.create_table(
        "provider_states",
        sa.Column("provider", sa.String(40), nullable=False),
        sa.Column("drawn_until", sa.Float, nullable=False, server_default="0"),
        sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
        sa.Column("backoff_seconds", sa.Integer, nullable=False, server_default="0"),
        sa.Column("open_until", Moment),
        sa.Column("probe_until", Moment),
        sa.Column("unavailable_since", Moment),
        sa.Column("error_category", sa.String(64)),
        sa.PrimaryKeyConstraint("provider", name=op.f("pk_provider_states")),
    )


def downgrade() -> None:
    """Drop them: all of it is the pace of the moment, which the next checks find out anew."""
    op.drop_table("provider_states")
    with op.batch_alter_table("unique_targets") as targets:
        for column in NEW:
            targets.drop_column(column)
