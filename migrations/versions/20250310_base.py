"""The base schema: the catalogue, people, what they watch and what was found.

Revision: 20250310_base, the first.
"""

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError
from sqlalchemy.dialects import postgresql

revision = "20250310_base"
down_revision = None
branch_labels = None
depends_on = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
Moment = sa.DateTime(timezone=True)

TABLES = (  # in the order of their foreign keys
    "providers",
    "recreation_areas",
    "campgrounds",
    "search",
    "users",
    "unique_targets",
    "user_scans",
    "scan_results",
    "admin_audit_events",
)


def upgrade() -> None:
    """Create every table."""
    _create_catalogue()
    _create_people()
    _create_watching()


def downgrade() -> None:
    """Drop every table, if all are empty."""
    for table in TABLES:
        if op.get_bind().execute(sa.select(sa.literal(1)).select_from(sa.table(table)).limit(1)).first():
            raise CommandError(f"{table} holds rows, which would be lost: to start anew, remove the database instead")
    for table in reversed(TABLES):
        op.drop_table(table)


def _create_catalogue() -> None:
    op.create_table(
        "providers",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_providers")),
    )
    op.create_table(
        "recreation_areas",
        sa.Column("provider", sa.String(40), nullable=False),
        sa.Column("recreation_area_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("state", sa.String(64)),
        sa.Column("latitude", sa.Float),
        sa.Column("longitude", sa.Float),
        sa.Column("updated_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("provider", "recreation_area_id", name=op.f("pk_recreation_areas")),
        sa.ForeignKeyConstraint(["provider"], ["providers.id"], name=op.f("fk_recreation_areas_provider")),
    )
    op.create_table(
        "campgrounds",
        sa.Column("provider", sa.String(40), nullable=False),
        sa.Column("campground_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("recreation_area_id", sa.String(64)),
        sa.Column("state", sa.String(64)),
        sa.Column("latitude", sa.Float),
        sa.Column("longitude", sa.Float),
        sa.Column("updated_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("provider", "campground_id", name=op.f("pk_campgrounds")),
        sa.ForeignKeyConstraint(["provider"], ["providers.id"], name=op.f("fk_campgrounds_provider")),
    )
    op.create_table(
        "search",
        sa.Column("provider", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("provider", "kind", "entity_id", name=op.f("pk_search")),
        sa.ForeignKeyConstraint(["provider"], ["providers.id"], name=op.f("fk_search_provider")),
    )


def _create_people() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("email", sa.String(320), nullable=False),
        sa.Column("is_admin", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("pushover_token", sa.String(64)),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("email", name=op.f("uq_users_email")),
    )
    op.create_table(
        "admin_audit_events",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("actor_id", sa.Uuid),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject_type", sa.String(40), nullable=False),
        sa.Column("subject_id", sa.String(64), nullable=False),
        sa.Column("detail", Json, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_admin_audit_events")),
        sa.ForeignKeyConstraint(
            ["actor_id"], ["users.id"], name=op.f("fk_admin_audit_events_actor_id"), ondelete="SET NULL"
        ),
    )
    op.create_index(op.f("ix_admin_audit_events_created_at"), "admin_audit_events", ["created_at"])


def _create_watching() -> None:
    op.create_table(
        "unique_targets",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("provider", sa.String(40), nullable=False),
        sa.Column("campground_id", sa.String(64), nullable=False),
        sa.Column("start_date", sa.Date, nullable=False),
        sa.Column("end_date", sa.Date, nullable=False),
        sa.Column("last_checked_at", Moment),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_unique_targets")),
        sa.UniqueConstraint(
            "provider",
            "campground_id",
            "start_date",
            "end_date",
            name=op.f("uq_unique_targets_provider_campground_id_start_date_end_date"),
        ),
        sa.ForeignKeyConstraint(
            ["provider", "campground_id"],
            ["campgrounds.provider", "campgrounds.campground_id"],
            name=op.f("fk_unique_targets_provider_campground_id"),
        ),
        sa.CheckConstraint("start_date < end_date", name=op.f("ck_unique_targets_has_nights")),
    )
    op.create_table(
        "user_scans",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("user_id", sa.Uuid, nullable=False),
        sa.Column("target_id", sa.Uuid, nullable=False),
        sa.Column("min_stay_length", sa.Integer, nullable=False, server_default="1"),
        sa.Column("preferred_types", Json, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("require_electric", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("require_accessible", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("is_active", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_scans")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_user_scans_user_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["target_id"], ["unique_targets.id"], name=op.f("fk_user_scans_target_id"), ondelete="CASCADE"
        ),
        sa.CheckConstraint("min_stay_length >= 1", name=op.f("ck_user_scans_min_stay_length")),
    )
    op.create_index(op.f("ix_user_scans_user_id"), "user_scans", ["user_id"])
    op.create_index(op.f("ix_user_scans_target_id"), "user_scans", ["target_id"])
    op.create_table(
        "scan_results",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("target_id", sa.Uuid, nullable=False),
        sa.Column("campsite_id", sa.String(128), nullable=False),
        sa.Column("campsite_name", sa.String(200)),
        sa.Column("campsite_type", sa.String(100)),
        sa.Column("is_electric", sa.Boolean),
        sa.Column("is_accessible", sa.Boolean),
        sa.Column("available_dates", Json, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scan_results")),
        sa.UniqueConstraint("target_id", "campsite_id", name=op.f("uq_scan_results_target_id_campsite_id")),
        sa.ForeignKeyConstraint(
            ["target_id"], ["unique_targets.id"], name=op.f("fk_scan_results_target_id"), ondelete="CASCADE"
        ),
    )
