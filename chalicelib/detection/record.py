"""Record: results and the intents they cause, in one short transaction that no older picture can get past."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, RowMapping, exists, or_, select, update

from chalicelib.db.scan_rows import filters_of, result_columns, result_of
from chalicelib.db.tables import campgrounds, campsites, scan_results, unique_targets, user_scans, users
from chalicelib.deps import Deps
from chalicelib.detection.documents import Fetched
from chalicelib.detection.due import Target, eligible
from chalicelib.outbox.enqueue import Intent, enqueue
from chalicelib.outbox.payload import Opening
from chalicelib.outbox.wording import Place, compose
from chalicelib.settings import Settings
from chalicelib.stays.campsites import Campsite
from chalicelib.stays.filters import Filters
from chalicelib.stays.openings import Comparison, MonthAnswer, Result, compare


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a check changed: new campsite nights of the target, and intents written."""

    openings: int = 0
    intents: int = 0


def record(
    deps: Deps, due: Target, token: UUID, fetched: Fetched, campsites_fetched_at: datetime | None
) -> Recorded | None:
    """Store what a check found; None when another process was quicker.

    1. Found the same as last time, and no scan waits to be told: one statement writes one row.
    2. Otherwise lock the target and present the lease's token; an older picture than the stored one is discarded.
    3. Compare with the stored results there, match the scans, whose versions are locked meanwhile.
    4. Replace the results that changed, insert the intents, commit.
    """
    answers, began = fetched.answers, fetched.began
    digest = _digest(answers, campsites_fetched_at, began.date())
    with deps.database.transaction() as connection:
        if connection.execute(_unchanged(deps, due.id, token, began, digest)).rowcount:
            return Recorded()
        target = _locked_target(connection, due)
        if target is None or target["lease_token"] != token or _is_older(began, target["last_checked_at"]):
            return None
        stored = _stored(connection, due.id)
        known = _described(connection, target, answers)
        start = max(target["start_date"], began.date())
        comparison = compare(stored, known, start, target["end_date"], began)
        place = Place.of(
            deps.providers[due.provider].info,
            due.campground_id,
            target["campground_name"],
            target["start_date"],
            target["end_date"],
        )
        intents = _intents(connection, deps.settings, target, place, _Change(stored, comparison, began))
        _replace(deps, connection, due.id, stored, comparison.results)
        remembered = any(result.unknown_since for result in comparison.results.values())
        connection.execute(
            update(unique_targets)
            .where(unique_targets.c.id == due.id)
            .values(**_success(began), results_digest=None if remembered else digest)
        )
        enqueue(connection, intents, deps.clock())
    return Recorded(sum(len(nights) for nights in comparison.openings.values()), len(intents))


def _unchanged(deps: Deps, target_id: UUID, token: UUID, began: datetime, digest: str) -> Any:
    t, s = unique_targets.c, user_scans.c
    waiting = exists().where(
        s.target_id == target_id, s.version != s.told_version, s.user_id == users.c.id, *eligible(deps.settings)
    )
    return (
        update(unique_targets)
        .where(
            t.id == target_id,
            t.lease_token == token,
            t.results_digest == digest,
            or_(t.last_checked_at.is_(None), t.last_checked_at <= began),
            ~waiting,
        )
        .values(**_success(began))
    )


def _success(began: datetime) -> dict[str, Any]:
    return {
        "last_checked_at": began,
        "lease_token": None,
        "lease_until": None,
        "failures": 0,
        "failing_since": None,
        "error_category": None,
        "retry_at": None,
    }


def _digest(answers: Iterable[MonthAnswer], campsites_fetched_at: datetime | None, today: date) -> str:
    """A fingerprint of a picture: whatever could change results is in it."""
    picture = [
        [
            answer.month.isoformat(),
            answer.blank,
            [
                [site.campsite.to_json(), sorted(night.isoformat() for night in site.nights if night >= today)]
                if site.nights
                else [site_id, site.nights is None]
                for site_id, site in sorted(answer.sites.items())
                if site.nights is None or site.nights
            ],
        ]
        for answer in answers
    ]
    return sha256(json.dumps([picture, str(campsites_fetched_at)]).encode()).hexdigest()


def _locked_target(connection: Connection, due: Target) -> RowMapping | None:
    """The target's row, locked, with the name of its campground, which this very check may have learned."""
    here = (campgrounds.c.provider == due.provider) & (campgrounds.c.campground_id == due.campground_id)
    name = select(campgrounds.c.name).where(here).scalar_subquery()
    statement = select(unique_targets, name.label("campground_name")).where(unique_targets.c.id == due.id)
    return connection.execute(statement.with_for_update(of=unique_targets)).mappings().one_or_none()


def _is_older(began: datetime, stored: datetime | None) -> bool:
    return stored is not None and stored > began


def _stored(connection: Connection, target_id: UUID) -> dict[str, Result]:
    rows = connection.execute(select(scan_results).where(scan_results.c.target_id == target_id)).mappings()
    return {row["campsite_id"]: result_of(row) for row in rows}


def _described(connection: Connection, target: RowMapping, answers: Sequence[MonthAnswer]) -> list[MonthAnswer]:
    """The answers, with the campsite metadata of every site that has open nights."""
    wanted = {site_id for answer in answers for site_id, site in answer.sites.items() if site.nights}
    c = campsites.c
    rows = connection.execute(
        select(c.campsite_id, c.campsite).where(
            c.provider == target["provider"], c.campground_id == target["campground_id"]
        )
    )
    metadata = {site_id: Campsite.from_json(data) for site_id, data in rows if site_id in wanted}
    return [answer.described(metadata) for answer in answers]


def _replace(
    deps: Deps, connection: Connection, target_id: UUID, stored: Mapping[str, Result], results: Mapping[str, Result]
) -> None:
    """Write the rows that changed; most have not."""
    gone = [site_id for site_id in stored if site_id not in results]
    if gone:
        connection.execute(
            scan_results.delete().where(scan_results.c.target_id == target_id, scan_results.c.campsite_id.in_(gone))
        )
    changed = [
        {"target_id": target_id, **result_columns(result)}
        for site_id, result in results.items()
        if stored.get(site_id) != result
    ]
    if changed:
        insert = deps.database.upsert(scan_results)
        replaced = {name: insert.excluded[name] for name in ("campsite", "nights", "unknown_since")}
        upsert = insert.on_conflict_do_update(index_elements=["target_id", "campsite_id"], set_=replaced)
        # Without RETURNING, SQLAlchemy sends a row at a time where there is an ON CONFLICT (its issue 13130).
        connection.execute(upsert.returning(scan_results.c.campsite_id), changed)


@dataclass(frozen=True, slots=True)
class _Change:
    """Results before a check and after it; `began` is when its fetch did."""

    stored: Mapping[str, Result]
    comparison: Comparison
    began: datetime

    def matches(self, scan: RowMapping) -> dict[str, frozenset[date]]:
        """The nights to tell a scan of, by campsite id."""
        filters = filters_of(scan)
        found = {
            site_id: filters.matching_nights(result.campsite, result.nights, self._news(scan, filters, site_id))
            for site_id, result in self.comparison.results.items()
        }
        return {site_id: nights for site_id, nights in found.items() if nights}

    def _news(self, scan: RowMapping, filters: Filters, site_id: str) -> frozenset[date]:
        """The nights of a campsite that are new to this scan.

        To a new or changed scan every night that this check saw. To others the openings; nights that were unknown when
        the scan joined and are seen again; and everything where only now it is known that the campsite will do.
        """
        before = self.stored.get(site_id)
        if scan["version"] != scan["told_version"] or (before is not None and not filters.admit(before.campsite)):
            return self.comparison.results[site_id].known_nights()
        joined = scan["told_at"]
        again = self.comparison.seen_again.get(site_id, {})
        unseen = {night for night, since in again.items() if joined is not None and joined >= since}
        return self.comparison.openings.get(site_id, frozenset()) | unseen


def _intents(
    connection: Connection, settings: Settings, target: RowMapping, place: Place, change: _Change
) -> list[Intent]:
    """What is to be told of this detection, to whom; scans that were new or changed count as told from here on."""
    scans = connection.execute(
        select(user_scans)
        .join(users, users.c.id == user_scans.c.user_id)
        .where(user_scans.c.target_id == target["id"], *eligible(settings))
        .order_by(user_scans.c.id)
        .with_for_update(of=user_scans, key_share=True)
    )
    detection_id = uuid4()
    intents: list[Intent] = []
    for scan in scans.mappings():
        openings = [
            Opening(change.comparison.results[site_id].campsite, tuple(sorted(nights)), place.campsite_link(site_id))
            for site_id, nights in change.matches(scan).items()
        ]
        for key, told in _split(openings, scan["mode"], settings.direct_limit):
            payload = compose(place, told, change.began, summary=key == "summary")
            intents.append(Intent(detection_id, scan["user_id"], scan["id"], target["id"], key, payload))
        if scan["version"] != scan["told_version"]:
            connection.execute(
                update(user_scans)
                .where(user_scans.c.id == scan["id"])
                .values(told_version=scan["version"], told_at=change.began)
            )
    return intents


def _split(openings: Sequence[Opening], mode: str, direct_limit: int) -> list[tuple[str, Sequence[Opening]]]:
    """Delivery keys with what each tells: one summary, or one intent a campsite."""
    if not openings:
        return []
    if mode == "summary" or (direct_limit and len(openings) > direct_limit):
        return [("summary", openings)]
    return [(opening.campsite.id, [opening]) for opening in openings]
