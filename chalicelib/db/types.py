"""Column types that behave alike on SQLite and PostgreSQL."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator

Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""JSON documents: lists and objects of plain values."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment: aware and UTC on the way in and out. SQLite keeps no zone, so it gets UTC without one."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive moment; hand SQLite a naive UTC one."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored moment must be aware")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Make it UTC and aware."""
        del dialect
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
