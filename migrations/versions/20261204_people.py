"""People at the edge: tokens, sessions, sign-in limits, repeated requests, glimpses; indexes for lists by key.

Revision: 20261204_people, after 20261201_delivery.
"""

from uuid import UUID

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError
from sqlalchemy.dialects import postgresql

revision = "20261204_people"
down_revision = "20261201_delivery"
branch_labels = None
depends_on = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
Moment = sa.DateTime(timezone=True)

NEW_IN_USERS = ("name", "time_zone", "password_hash", "oidc_subject")

LISTS = (
    ("users", ("created_at", "id")),
    ("admin_audit_events", ("created_at", "id")),
    ("user_scans", ("created_at", "id")),
    ("user_scans", ("user_id", "created_at", "id")),
    ("notification_outbox", ("created_at", "id")),
    ("notification_outbox", ("status", "created_at", "id")),
    ("alert_history", ("scan_id", "finished_at", "id")),
)
"""Indexes by which lists page."""

COVERED = (
    ("admin_audit_events", ("created_at",)),
    ("user_scans", ("user_id",)),
    ("alert_history", ("scan_id", "finished_at")),
)
"""Indexes that one of those makes needless."""


def upgrade() -> None:
    """Add columns, tables and indexes; no row changes."""
    with op.batch_alter_table("users") as users:
        users.add_column(sa.Column("name", sa.String(100)))
        users.add_column(sa.Column("time_zone", sa.String(64)))
        users.add_column(sa.Column("password_hash", sa.String(200)))
        users.add_column(sa.Column("oidc_subject", sa.String(300)))
        users.create_unique_constraint(op.f("uq_users_oidc_subject"), ["oidc_subject"])
    for table, columns in COVERED:
        op.drop_index(_name(table, columns), table)
    for table, columns in LISTS:
        op.create_index(_name(table, columns), table, list(columns))
    op.create_index(op.f("ix_users_email_pattern"), "users", ["email"], postgresql_ops={"email": "text_pattern_ops"})
    _create_ways_in()
    op.create_table(
        "glimpses",
        sa.Column("provider", sa.String(40), nullable=False),
        sa.Column("campground_id", sa.String(64), nullable=False),
        sa.Column("month", sa.Date, nullable=False),
        sa.Column("fetched_at", Moment, nullable=False),
        sa.Column("campsites", Json, nullable=False),
        sa.PrimaryKeyConstraint("provider", "campground_id", "month", name=op.f("pk_glimpses")),
    )
    op.create_index(op.f("ix_glimpses_fetched_at"), "glimpses", ["fetched_at"])


def downgrade() -> None:
    """Drop them, unless people would lose what opens their accounts. The rest is worth minutes or a sign-in."""
    connection = op.get_bind()
    for query, what in (
        ("SELECT 1 FROM api_tokens WHERE revoked_at IS NULL LIMIT 1", "api_tokens holds tokens that are in use"),
        (
            f"SELECT 1 FROM users WHERE {' OR '.join(f'{name} IS NOT NULL' for name in NEW_IN_USERS)} LIMIT 1",  # noqa: S608
            "users holds names, time zones, passwords or subjects",
        ),
    ):
        if connection.execute(sa.text(query)).first():
            raise CommandError(f"{what}, which would be lost")
    for table in ("glimpses", "idempotency_keys", "sign_in_limits", "sessions", "api_tokens"):
        op.drop_table(table)
    op.drop_index(op.f("ix_users_email_pattern"), "users")
    for table, columns in LISTS:
        op.drop_index(_name(table, columns), table)
    for table, columns in COVERED:
        op.create_index(_name(table, columns), table, list(columns))
    with op.batch_alter_table("users") as users:
        users.drop_constraint(op.f("uq_users_oidc_subject"), type_="unique")
        for column in NEW_IN_USERS:
            users.drop_column(column)


def _name(table: str, columns: tuple[str, ...]) -> str:
    return op.f(f"ix_{table}_{'_'.join(columns)}")


def _owner() -> sa.Column[UUID]:
    return sa.Column("user_id", sa.Uuid, nullable=False)


def _create_ways_in() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Uuid, nullable=False),
        _owner(),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("last_used_at", Moment),
        sa.Column("revoked_at", Moment),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_tokens_token_hash")),
        sa.CheckConstraint("kind IN ('read_write', 'read_only', 'service')", name=op.f("ck_api_tokens_kind")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_api_tokens_user_id"), ondelete="CASCADE"),
    )
    op.create_index(op.f("ix_api_tokens_user_id"), "api_tokens", ["user_id"])
    op.create_index(op.f("ix_api_tokens_revoked_at"), "api_tokens", ["revoked_at"])
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid, nullable=False),
        _owner(),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("expires_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_sessions_token_hash")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_sessions_user_id"), ondelete="CASCADE"),
    )
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"])
    op.create_index(op.f("ix_sessions_expires_at"), "sessions", ["expires_at"])
    op.create_table(
        "sign_in_limits",
        sa.Column("subject", sa.String(80), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("window_ends_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_sign_in_limits")),
    )
    op.create_index(op.f("ix_sign_in_limits_window_ends_at"), "sign_in_limits", ["window_ends_at"])
    op.create_table(
        "idempotency_keys",
        _owner(),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("begun_at", Moment, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("answer", Json),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_idempotency_keys")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_idempotency_keys_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_idempotency_keys_begun_at"), "idempotency_keys", ["begun_at"])
