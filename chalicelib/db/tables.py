"""Every table, to be read like a schema. SQLAlchemy Core only: the scheduled functions pay for no ORM."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    text,
    true,
)

from chalicelib.db.types import Json, UtcDateTime

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# --- the catalogue ---------------------------------------------------------------------------------------------------

providers = Table(
    "providers",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(200), nullable=False),
)

recreation_areas = Table(
    "recreation_areas",
    metadata,
    Column("provider", String(40), ForeignKey("providers.id"), primary_key=True),
    Column("recreation_area_id", String(64), primary_key=True),
    Column("name", String(300), nullable=False),
    Column("state", String(64)),
    Column("latitude", Float),
    Column("longitude", Float),
    Column("updated_at", UtcDateTime, nullable=False),
)

campgrounds = Table(
    "campgrounds",
    metadata,
    Column("provider", String(40), ForeignKey("providers.id"), primary_key=True),
    Column("campground_id", String(64), primary_key=True),
    Column("name", String(300)),  # null until a look-up or the metadata tells it
    Column("recreation_area_id", String(64)),  # no foreign key: the export has dangling ones, and keeps them
    Column("state", String(64)),
    Column("time_zone", String(64)),
    Column("latitude", Float),
    Column("longitude", Float),
    Column("reservable", Boolean),  # null: unknown
    Column("enabled", Boolean, nullable=False, server_default=true()),
    Column("campsites_fetched_at", UtcDateTime),  # when the campsite metadata came; null: never
    Column("campsites_tried_at", UtcDateTime),  # when it was last asked for
    Column("updated_at", UtcDateTime, nullable=False),
)

campsites = Table(
    "campsites",
    metadata,
    Column("provider", String(40), primary_key=True),
    Column("campground_id", String(64), primary_key=True),
    Column("campsite_id", String(128), primary_key=True),
    Column("campsite", Json, nullable=False),  # stays.campsites.Campsite
    ForeignKeyConstraint(
        ["provider", "campground_id"], ["campgrounds.provider", "campgrounds.campground_id"], ondelete="CASCADE"
    ),
)

search = Table(
    "search",
    metadata,
    Column("provider", String(40), ForeignKey("providers.id"), primary_key=True),
    Column("kind", String(20), primary_key=True),  # recreation_area, campground
    Column("entity_id", String(64), primary_key=True),
    Column("name", String(300), nullable=False),
    Column("terms", Text, nullable=False),  # name and place, lower case, without accents
    Column("rank", Integer, nullable=False, server_default="0"),  # greater comes first
)

# --- people ----------------------------------------------------------------------------------------------------------

users = Table(
    "users",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("email", String(320), nullable=False, unique=True),  # lower case
    Column("is_admin", Boolean, nullable=False, server_default=false()),
    Column("scanning_enabled", Boolean, nullable=False, server_default=true()),
    Column("invited_at", UtcDateTime),  # null: not invited, which matters on invite-only instances
    Column("created_at", UtcDateTime, nullable=False),
    Column("name", String(100)),
    Column("time_zone", String(64)),  # an IANA name; null: as the browser says
    Column("password_hash", String(200)),  # argon2id; null: no password opens this account
    Column("oidc_subject", String(300), unique=True),  # issuer, a blank, and the issuer's own id of the person
    Index("ix_users_created_at_id", "created_at", "id"),
    Index("ix_users_email_pattern", "email", postgresql_ops={"email": "text_pattern_ops"}),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", String(100), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("token_hash", String(64), nullable=False, unique=True),  # SHA-256 of what was shown once
    Column("created_at", UtcDateTime, nullable=False),
    Column("last_used_at", UtcDateTime),  # to the minute
    Column("revoked_at", UtcDateTime, index=True),
    CheckConstraint("kind IN ('read_write', 'read_only', 'service')", name="kind"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("token_hash", String(64), nullable=False, unique=True),  # SHA-256 of the cookie
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

sign_in_limits = Table(
    "sign_in_limits",
    metadata,
    Column("subject", String(80), primary_key=True),  # "account" or "address", and a keyed hash of which
    Column("failures", Integer, nullable=False),  # within the window
    Column("window_ends_at", UtcDateTime, nullable=False, index=True),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("request_hash", String(64), nullable=False),  # SHA-256 of method, path and body
    Column("begun_at", UtcDateTime, nullable=False, index=True),
    Column("status", Integer),  # of the first answer; null: still running
    Column("answer", Json),  # its body, less what is shown once
)

notification_channels = Table(
    "notification_channels",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("kind", String(20), nullable=False),  # checked by the registry, in wiring
    Column("credentials", Text),  # the recipient, encrypted; null: taken away
    Column("enabled", Boolean, nullable=False, server_default=true()),
    Column("disabled_reason", String(64)),
    Column("refusals", Integer, nullable=False, server_default="0"),  # permanent ones in a row
    Column("created_at", UtcDateTime, nullable=False),
)

admin_audit_events = Table(
    "admin_audit_events",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("actor_id", Uuid, ForeignKey("users.id", ondelete="SET NULL")),  # null: the command line
    Column("action", String(64), nullable=False),
    Column("subject_type", String(40), nullable=False),
    Column("subject_id", String(64), nullable=False),
    Column("detail", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index("ix_admin_audit_events_created_at_id", "created_at", "id"),
)

# --- what is watched -------------------------------------------------------------------------------------------------

unique_targets = Table(
    "unique_targets",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("provider", String(40), nullable=False),
    Column("campground_id", String(64), nullable=False),
    Column("start_date", Date, nullable=False),  # the first night that counts
    Column("end_date", Date, nullable=False),  # checkout: not a night
    Column("created_at", UtcDateTime, nullable=False),
    Column("last_checked_at", UtcDateTime),  # when the fetch began whose results are stored
    Column("last_attempt_at", UtcDateTime),
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row
    Column("failing_since", UtcDateTime),
    Column("error_category", String(64)),
    Column("retry_at", UtcDateTime),  # a failing target is left alone until then
    Column("lease_token", Uuid),
    Column("lease_until", UtcDateTime),
    Column("results_fingerprint", String(64)),  # of what the last success found; null: compare in full
    UniqueConstraint("provider", "campground_id", "start_date", "end_date"),
    ForeignKeyConstraint(["provider", "campground_id"], ["campgrounds.provider", "campgrounds.campground_id"]),
    CheckConstraint("start_date < end_date", name="has_nights"),
)

user_scans = Table(
    "user_scans",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("target_id", Uuid, ForeignKey("unique_targets.id", ondelete="CASCADE"), nullable=False, index=True),
    Column(
        "channel_id", Uuid, ForeignKey("notification_channels.id", ondelete="SET NULL")
    ),  # null: the oldest enabled one
    Column("mode", String(10), nullable=False, server_default="summary"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    Column("min_stay_length", Integer, nullable=False, server_default="1"),
    Column("preferred_types", Json, nullable=False, server_default=text("'[]'")),
    Column("require_electric", Boolean, nullable=False, server_default=false()),
    Column("require_accessible", Boolean, nullable=False, server_default=false()),
    Column("people", Integer),
    Column("equipment", String(60)),
    Column("equipment_length", Integer),  # feet
    Column("loops_wanted", Json, nullable=False, server_default=text("'[]'")),
    Column("loops_unwanted", Json, nullable=False, server_default=text("'[]'")),
    Column("campsites_wanted", Json, nullable=False, server_default=text("'[]'")),
    Column("campsites_unwanted", Json, nullable=False, server_default=text("'[]'")),
    Column("arrival_weekdays", Json, nullable=False, server_default=text("'[]'")),  # Monday is 0
    Column("version", Integer, nullable=False, server_default="1"),  # of what it wants
    Column("told_version", Integer, nullable=False, server_default="0"),  # of what it was told for
    Column("told_at", UtcDateTime),  # when the fetch began whose check told that version everything
    Column("created_at", UtcDateTime, nullable=False),
    CheckConstraint("mode IN ('summary', 'direct')", name="mode"),
    CheckConstraint("min_stay_length >= 1", name="min_stay_length"),
    Index("ix_user_scans_created_at_id", "created_at", "id"),
    Index("ix_user_scans_user_id_created_at_id", "user_id", "created_at", "id"),
)

scan_results = Table(
    "scan_results",
    metadata,
    Column("target_id", Uuid, ForeignKey("unique_targets.id", ondelete="CASCADE"), primary_key=True),
    Column("campsite_id", String(128), primary_key=True),
    Column("campsite", Json, nullable=False),  # stays.campsites.Campsite
    Column("nights", Json, nullable=False),  # {"2027-07-20": when it was found open}
    Column("unknown_since", Json, nullable=False, server_default=text("'{}'")),  # {"2027-07-01": since when}
)

glimpses = Table(
    "glimpses",
    metadata,
    Column("provider", String(40), primary_key=True),
    Column("campground_id", String(64), primary_key=True),
    Column("month", Date, primary_key=True),  # its first day
    Column("fetched_at", UtcDateTime, nullable=False, index=True),
    Column("campsites", Json, nullable=False),  # {"campsite id": [stays.campsites.Campsite, open nights or null]}
)
"""Months that a preview or a calendar fetched, kept for minutes so that looking twice asks the booking site once."""

provider_states = Table(
    "provider_states",
    metadata,
    Column("provider", String(40), primary_key=True),
    Column("drawn_until", Float, nullable=False, server_default="0"),  # Unix seconds until which the budget is spent
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row, of the kinds that feed the breaker
    Column("backoff_seconds", Integer, nullable=False, server_default="0"),
    Column("open_until", UtcDateTime),  # the breaker; null: closed; past: half open
    Column("probe_until", UtcDateTime),  # a half-open breaker's one probe is under way
    Column("unavailable_since", UtcDateTime),
    Column("error_category", String(64)),
)

# --- what is to be told ----------------------------------------------------------------------------------------------

notification_outbox = Table(
    "notification_outbox",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("detection_id", Uuid, nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="SET NULL"), index=True),
    Column("scan_id", Uuid, ForeignKey("user_scans.id", ondelete="SET NULL"), index=True),
    Column("target_id", Uuid, ForeignKey("unique_targets.id", ondelete="SET NULL"), index=True),
    Column(
        "channel_id", Uuid, ForeignKey("notification_channels.id", ondelete="SET NULL"), index=True
    ),  # of the last claim
    Column("channel_kind", String(20)),  # likewise
    Column("delivery_key", String(128), nullable=False),
    Column("payload", Json, nullable=False),  # outbox.payload.NotificationDTO
    Column("told", Json),  # what the last claim tells: {"campsite id": ["2027-07-20"]}
    Column("status", String(20), nullable=False, server_default="pending"),
    Column("claim_token", Uuid),
    Column("provider_message_id", String(200)),
    Column("attempt_count", Integer, nullable=False, server_default="0"),
    Column("next_attempt_at", UtcDateTime, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    Column("error_category", String(64)),
    UniqueConstraint("detection_id", "scan_id", "delivery_key"),
    CheckConstraint("status IN ('pending', 'sending', 'retry', 'sent', 'skipped', 'failed')", name="status"),
    CheckConstraint("(finished_at IS NOT NULL) = (status IN ('sent', 'skipped', 'failed'))", name="finished"),
    CheckConstraint("attempt_count >= 0", name="attempt_count"),
    Index("ix_notification_outbox_status_next_attempt_at", "status", "next_attempt_at"),
    Index("ix_notification_outbox_created_at_id", "created_at", "id"),
    Index("ix_notification_outbox_status_created_at_id", "status", "created_at", "id"),
    Index(
        "ix_notification_outbox_due",
        "next_attempt_at",
        "id",
        sqlite_where=text("status IN ('pending', 'retry')"),
        postgresql_where=text("status IN ('pending', 'retry')"),
    ),
    Index(
        "ix_notification_outbox_finished_at",
        "finished_at",
        sqlite_where=text("finished_at IS NOT NULL"),
        postgresql_where=text("finished_at IS NOT NULL"),
    ),
)

channel_states = Table(
    "channel_states",
    metadata,
    Column("kind", String(20), primary_key=True),
    Column("faults", Integer, nullable=False, server_default="0"),  # in a row
    Column("backoff_seconds", Integer, nullable=False, server_default="0"),
    Column("parked_until", UtcDateTime),  # null: open for all; past: one probe at a time
    Column("error_category", String(64)),
)

alert_history = Table(
    "alert_history",
    metadata,
    Column("id", Uuid, primary_key=True),  # the outbox row's
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), index=True),
    Column("scan_id", Uuid, ForeignKey("user_scans.id", ondelete="SET NULL")),
    Column("outcome", String(20), nullable=False),  # the terminal status
    Column("error_category", String(64)),
    Column("attempt_count", Integer, nullable=False),
    Column("nights", Json, nullable=False),  # what was told, or would have been: {"campsite id": ["2027-07-20"]}
    Column("finished_at", UtcDateTime, nullable=False, index=True),
    Index("ix_alert_history_scan_id_finished_at_id", "scan_id", "finished_at", "id"),
)
