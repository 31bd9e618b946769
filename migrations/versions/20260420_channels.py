"""Ways to reach a person, their recipients encrypted: `users.pushover_token` moves there.

Revision: 20260420_channels, after 4d64e0e4ae18.
"""

from uuid import uuid4

import sqlalchemy as sa
from alembic import context, op
from alembic.util import CommandError
from cryptography.fernet import Fernet

revision = "20260420_channels"
down_revision = "4d64e0e4ae18"
branch_labels = None
depends_on = None

Moment = sa.DateTime(timezone=True)

users = sa.table(
    "users", sa.column("id", sa.Uuid), sa.column("pushover_token", sa.String), sa.column("created_at", Moment)
)
channels = sa.table(
    "notification_channels",
    sa.column("id", sa.Uuid),
    sa.column("user_id", sa.Uuid),
    sa.column("kind", sa.String),
    sa.column("credentials", sa.Text),
    sa.column("created_at", Moment),
)


def upgrade() -> None:
    """Encrypt the tokens first: without a key nothing begins."""
    rows = _encrypted_tokens()
    op.create_table(
        "notification_channels",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("user_id", sa.Uuid, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("credentials", sa.Text),
        sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("disabled_reason", sa.String(64)),
        sa.Column("refusals", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_channels")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_notification_channels_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_notification_channels_user_id"), "notification_channels", ["user_id"])
    if rows:
        op.get_bind().execute(channels.insert(), rows)
    with op.batch_alter_table("users") as batch:
        batch.drop_column("pushover_token")
    with op.batch_alter_table("user_scans") as scans:
        scans.add_column(sa.Column("channel_id", sa.Uuid))
        scans.create_foreign_key(
            op.f("fk_user_scans_channel_id"), "notification_channels", ["channel_id"], ["id"], ondelete="SET NULL"
        )


def downgrade() -> None:
    """The plain column again, if there is nothing that would have to go back to being plain."""
    if op.get_bind().execute(sa.text("SELECT 1 FROM notification_channels LIMIT 1")).first():
        raise CommandError("notification_channels holds encrypted recipients, which would have to be stored in plain")
    with op.batch_alter_table("user_scans") as scans:
        scans.drop_constraint(op.f("fk_user_scans_channel_id"), type_="foreignkey")
        scans.drop_column("channel_id")
    op.drop_table("notification_channels")
    with op.batch_alter_table("users") as batch:
        batch.add_column(sa.Column("pushover_token", sa.String(64)))


def _encrypted_tokens() -> list[dict[str, object]]:
    """A channel for each user with a token, under the newest key. A channel is as old as its user."""
    held = (
        op.get_bind()
        .execute(sa.select(users).where(users.c.pushover_token.is_not(None), users.c.pushover_token != ""))
        .all()
    )
    if not held:
        return []
    fernet = _newest_key()
    return [
        {
            "id": uuid4(),
            "user_id": user.id,
            "kind": "pushover",
            "credentials": fernet.encrypt(user.pushover_token.encode()).decode(),
            "created_at": user.created_at,
        }
        for user in held
    ]


def _newest_key() -> Fernet:
    keys = context.config.attributes.get("secret_keys", ())
    if not keys:
        raise CommandError(
            "users have Pushover keys that are to be encrypted: set SITEBELL_SECRET_KEYS; nothing was changed"
        )
    try:
        return Fernet(keys[0])
    except ValueError:
        raise CommandError("SITEBELL_SECRET_KEYS: the first key is not 32 url-safe base64 bytes") from None
