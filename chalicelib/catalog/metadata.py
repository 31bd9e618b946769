"""Remembers the campsite metadata that a detection has fetched."""

from datetime import datetime

from sqlalchemy import Connection, and_, delete, insert, select, update

from chalicelib.catalog.search import make_findable
from chalicelib.db.tables import campgrounds, campsites
from chalicelib.providers.contract import CampsiteMetadata
from chalicelib.stays.names import tidy_name


def remember_metadata(
    connection: Connection, provider_id: str, campground_id: str, metadata: CampsiteMetadata, now: datetime
) -> None:
    """Replace what is known of the campground's campsites, inside the caller's transaction.

    1. Lock the campground's row, so that two detections of one campground take turns.
    2. Note the fetch, and the campground's name if it was missing: search finds it from then on.
    3. Replace the campsites, unless the answer names none: a hiccup must not unlearn what scans rely on.
    """
    this = and_(campgrounds.c.provider == provider_id, campgrounds.c.campground_id == campground_id)
    known_name = connection.execute(select(campgrounds.c.name).where(this).with_for_update()).scalar_one()
    name = tidy_name(metadata.campground_name or "")
    if name and not known_name:
        connection.execute(update(campgrounds).where(this).values(campsites_fetched_at=now, name=name, updated_at=now))
        make_findable(connection, provider_id, campground_id)
    else:
        connection.execute(update(campgrounds).where(this).values(campsites_fetched_at=now))
    if not metadata.campsites:
        return
    connection.execute(
        delete(campsites).where(campsites.c.provider == provider_id, campsites.c.campground_id == campground_id)
    )
    rows = [
        {
            "provider": provider_id,
            "campground_id": campground_id,
            "campsite_id": campsite_id,
            "campsite": campsite.to_json(),
        }
        for campsite_id, campsite in metadata.campsites.items()
    ]
    connection.execute(insert(campsites), rows)
