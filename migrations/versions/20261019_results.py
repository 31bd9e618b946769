"""A result holds all that is known of its campsite, and when each night was found.

Revision: 20261019_results, after 20260914_filters.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError
from sqlalchemy.dialects import postgresql

revision = "20261019_results"
down_revision = "20260914_filters"
branch_labels = None
depends_on = None

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
Moment = sa.DateTime(timezone=True)

Row = Mapping[str, Any] | sa.RowMapping

targets = sa.table("unique_targets", sa.column("id", sa.Uuid), sa.column("last_checked_at", Moment))
earlier = sa.table(
    "scan_results",
    sa.column("id", sa.Uuid),
    sa.column("target_id", sa.Uuid),
    sa.column("campsite_id", sa.String),
    sa.column("campsite_name", sa.String),
    sa.column("campsite_type", sa.String),
    sa.column("is_electric", sa.Boolean),
    sa.column("is_accessible", sa.Boolean),
    sa.column("available_dates", Json),
    sa.column("created_at", Moment),
)
later = sa.table(
    "scan_results",
    sa.column("target_id", sa.Uuid),
    sa.column("campsite_id", sa.String),
    sa.column("campsite", Json),
    sa.column("nights", Json),
    sa.column("unknown_since", Json),
)


def upgrade() -> None:
    """Read all rows, make the table anew, write them in their new form."""
    rows = [_forward(row) for row in _rows(earlier)]
    op.drop_table("scan_results")
    op.create_table(
        "scan_results",
        sa.Column("target_id", sa.Uuid, nullable=False),
        sa.Column("campsite_id", sa.String(128), nullable=False),
        sa.Column("campsite", Json, nullable=False),
        sa.Column("nights", Json, nullable=False),
        sa.Column("unknown_since", Json, nullable=False, server_default=sa.text("'{}'")),
        sa.PrimaryKeyConstraint("target_id", "campsite_id", name=op.f("pk_scan_results")),
        _to_targets(),
    )
    _write(later, rows)


def downgrade() -> None:
    """The earlier form again, if `upgrade` would make every row what it is now."""
    now = _rows(later)
    rows = [_back(row) for row in now]
    checked = {row["target_id"]: row["last_checked_at"] for row in now}
    for new, old in zip(now, rows, strict=True):
        again = _forward({**old, "last_checked_at": checked[old["target_id"]]})
        if any(again[column] != new[column] for column in again):
            raise CommandError(
                "scan_results holds what the earlier table has no room for: loops, people, equipment, times"
            )
    op.drop_table("scan_results")
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
        _to_targets(),
    )
    _write(earlier, rows)


def _to_targets() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["target_id"], ["unique_targets.id"], name=op.f("fk_scan_results_target_id"), ondelete="CASCADE"
    )


def _rows(table: sa.TableClause) -> Sequence[Row]:
    """Every row of either form, with its target's last_checked_at."""
    query = sa.select(table, targets.c.last_checked_at).outerjoin(targets, targets.c.id == table.c.target_id)
    return op.get_bind().execute(query).mappings().all()


def _write(table: sa.TableClause, rows: list[dict[str, Any]]) -> None:
    if rows:
        op.get_bind().execute(table.insert(), rows)


def _forward(row: Row) -> dict[str, Any]:
    """An earlier row in its new form. Its nights were found when the target was last checked."""
    found = _iso(row["last_checked_at"] or row["created_at"])
    return {
        "target_id": row["target_id"],
        "campsite_id": row["campsite_id"],
        "campsite": {
            "campsite_id": row["campsite_id"],
            "name": row["campsite_name"] or "",
            "loop": None,
            "type": row["campsite_type"],
            "types": _types(row["campsite_type"]),
            "electric": row["is_electric"],
            "accessible": row["is_accessible"],
            "min_people": None,
            "max_people": None,
            "equipment": [],
        },
        "nights": {night[:10]: found for night in sorted(row["available_dates"])},
        "unknown_since": {},
    }


def _back(row: Row) -> dict[str, Any]:
    """A row in its earlier form. It was created when the first of its nights was found."""
    campsite = row["campsite"]
    found = min(row["nights"].values(), default=None)
    created = datetime.fromisoformat(found) if found else row["last_checked_at"] or datetime.now(UTC)
    return {
        "id": uuid4(),
        "target_id": row["target_id"],
        "campsite_id": row["campsite_id"],
        "campsite_name": campsite["name"],
        "campsite_type": campsite["type"],
        "is_electric": campsite["electric"],
        "is_accessible": campsite["accessible"],
        "available_dates": sorted(row["nights"]),
        "created_at": created if op.get_context().dialect.name == "postgresql" else created.replace(tzinfo=None),
    }


def _iso(moment: datetime) -> str:
    """UTC with a `Z`; SQLite's come without a zone and are UTC."""
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _types(provider_type: str | None) -> list[str]:
    """What Recreation.gov's word for a site means, as it was read when this was written."""
    words = (provider_type or "").upper()
    if not words.strip():
        return []
    types: set[str] = set()
    if "STANDARD" in words:
        types |= {"tent", "rv"}
    if any(word in words for word in ("TENT", "WALK TO", "HIKE TO", "BOAT IN")):
        types.add("tent")
    if "RV" in words.split():
        types.add("rv")
    if any(word in words for word in ("CABIN", "YURT", "LOOKOUT", "SHELTER")):
        types.add("cabin")
    if not types:
        types.add("other")
    if "GROUP" in words:
        types.add("group")
    return sorted(types)
