"""What lists ask of a database that holds ten thousand of everything: an index leads to a page, wherever it begins."""

import re
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import select

from chalicelib.accounts import channels, users
from chalicelib.db import audit
from chalicelib.db.audit import OPERATOR
from chalicelib.db.engine import Database
from chalicelib.db.paging import Cursor, paged
from chalicelib.db.tables import alert_history
from chalicelib.deps import Deps
from chalicelib.outbox import reading
from chalicelib.scans import views
from tests.heart.test_queries import plans, sorts_before
from tests.support.standins import NOW, make_world

MANY = 10_000
BUSY = UUID(int=0)
"""A person with twenty scans, and a scan of which one alert in a hundred told."""
MIDDLE: Cursor = (NOW - timedelta(seconds=MANY // 2), UUID(int=0))
"""Halfway down every list."""

NUMBERS = f"""CREATE TEMPORARY TABLE numbers ON COMMIT DROP AS
    SELECT n, lpad(to_hex(n), 32, '0')::uuid AS id, '{BUSY}'::uuid AS busy,
           timestamptz '{NOW:%Y-%m-%d %H:%M:%S.%f}Z' - n * interval '1 second' AS at
    FROM generate_series(0, {MANY - 1}) AS n"""
OWNER = "CASE WHEN n % 500 = 0 THEN busy ELSE id END"
SCAN = "CASE WHEN n % 100 = 0 THEN busy ELSE id END"
FILL = [
    "INSERT INTO providers (id, name) VALUES ('many', 'Many')",
    "INSERT INTO campgrounds (provider, campground_id, updated_at) SELECT 'many', n, at FROM numbers",
    "INSERT INTO users (id, email, created_at) SELECT id, n || '@example.org', at FROM numbers",
    """INSERT INTO notification_channels (id, user_id, kind, credentials, created_at)
       SELECT id, id, 'pushover', '', at FROM numbers""",
    """INSERT INTO unique_targets (id, provider, campground_id, start_date, end_date, created_at, last_checked_at)
       SELECT id, 'many', n, '2027-07-01', '2027-07-30', at, at FROM numbers""",
    f"INSERT INTO user_scans (id, user_id, target_id, created_at) SELECT id, {OWNER}, id, at FROM numbers",
    """INSERT INTO notification_outbox (id, detection_id, user_id, scan_id, target_id, delivery_key, payload, status,
                                        next_attempt_at, created_at, finished_at)
       SELECT id, id, id, id, id, 'summary', '{}', CASE n % 100 WHEN 0 THEN 'failed' ELSE 'sent' END, at, at, at
       FROM numbers""",
    f"""INSERT INTO alert_history (id, user_id, scan_id, outcome, attempt_count, nights, finished_at)
       SELECT id, id, {SCAN}, 'sent', 1, '{{}}', at FROM numbers""",
    """INSERT INTO admin_audit_events (id, actor_id, action, subject_type, subject_id, detail, created_at)
       SELECT id, id, 'user.suspend', 'user', n, '{}', at FROM numbers""",
]


def fill(database: Database) -> None:
    with database.transaction() as connection:
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")  # the keys are right: no check
        for statement in (NUMBERS, *FILL, "ANALYZE"):
            connection.exec_driver_sql(statement)


def _told(deps: Deps, after: Cursor) -> None:
    """What was told for one scan, newest first."""
    told = alert_history.c
    query = select(alert_history).where(told.scan_id == BUSY)
    query = paged(query, told.finished_at, told.id, after=after, limit=100, newest_first=True)
    with deps.database.reading() as connection:
        connection.execute(query).all()


PAGES: list[tuple[str, Callable[[Deps], object]]] = [
    ("ix_user_scans_user_id_created_at_id", lambda deps: views.page(deps, by=BUSY, after=MIDDLE)),
    ("ix_user_scans_user_id_created_at_id", lambda deps: views.page(deps, by=BUSY, newest_first=True)),
    ("ix_user_scans_created_at_id", lambda deps: views.page(deps, by=OPERATOR, after=MIDDLE)),
    ("ix_user_scans_created_at_id", lambda deps: views.page(deps, by=OPERATOR, newest_first=True)),
    (
        "ix_user_scans_created_at_id",
        lambda deps: views.page(deps, by=OPERATOR, provider="many", active=True, newest_first=True, after=MIDDLE),
    ),
    ("ix_notification_outbox_created_at_id", lambda deps: reading.page(deps, after=MIDDLE)),
    ("ix_notification_outbox_created_at_id", lambda deps: reading.page(deps, newest_first=True, after=MIDDLE)),
    ("ix_notification_outbox_status_created_at_id", lambda deps: reading.page(deps, status="failed", after=MIDDLE)),
    (
        "ix_notification_outbox_status_created_at_id",
        lambda deps: reading.page(deps, status="failed", newest_first=True, after=MIDDLE),
    ),
    ("ix_admin_audit_events_created_at_id", lambda deps: audit.page(deps.database, after=MIDDLE)),
    ("uq_users_email", lambda deps: users.page(deps, after="5")),
    ("ix_alert_history_scan_id_finished_at_id", lambda deps: _told(deps, MIDDLE)),
]

FEW: list[tuple[str, Callable[[Deps], object]]] = [
    ("ix_notification_channels_user_id", lambda deps: channels.of_user(deps, BUSY)),
    (
        "ix_user_scans_target_id",
        lambda deps: views.page(deps, by=OPERATOR, provider="many", campground_id="77", newest_first=True),
    ),
]
"""Lists of which an index finds the few rows, which are then sorted."""

WALK = re.compile(r"Seq Scan on (?!provider_states\b)")
"""Reading a table from one end to the other; of booking sites there are a handful."""


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_pages_of_lists_of_ten_thousand_are_found_by_index_and_in_order(database: Database) -> None:
    fill(database)
    deps = make_world(database).deps
    for index, page in [*PAGES, *FEW]:
        (plan,) = plans(database, lambda page=page: page(deps))
        assert index in plan, plan
        assert not WALK.search(plan), plan
        assert (index, page) in FEW or not sorts_before(plan, index), plan
