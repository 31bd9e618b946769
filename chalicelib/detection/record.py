"""Record: results and the intents they cause, in one short transaction that no older picture can get past."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from hashlib import sha256
from uuid import UUID, uuid4

from sqlalchemy import Connection, RowMapping, Update, bindparam, exists, or_, select, update

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


@dataclass(frozen=True, slots=True)
class Found:
    """A fetch about to be recorded: the lease's token, when it began, and its fingerprint."""

    token: UUID
    began: datetime
    fingerprint: str


def fingerprint_of(fetched: Fetched, campsites_fetched_at: datetime | None) -> str:
    """Of all that results are made from, and the day: past nights drop out, and each answer is read once a day."""
    parts = [fetched.began.date().isoformat(), str(campsites_fetched_at)]
    return sha256("\n".join([*parts, *(document.fingerprint for document in fetched.documents)]).encode()).hexdigest()


def is_unchanged(deps: Deps, due: Target, found: Found) -> bool:
    """Note a check that found what the last one had, if no scan waits to be told: one statement, one row."""
    parameters = {"target": due.id, "token": found.token, "fingerprint": found.fingerprint, "began": found.began}
    with deps.database.transaction() as connection:
        return connection.execute(_unchanged(deps.settings.invite_only), parameters).rowcount == 1


def record(deps: Deps, due: Target, found: Found, answers: Sequence[MonthAnswer]) -> Recorded | None:
    """Store what a check found; None when another process was quicker.

    1. Lock the target and present the lease's token; an older picture than the stored one is discarded.
    2. Compare with the stored results there, match the scans, whose versions are locked meanwhile.
    3. Replace the results that changed, insert the intents, commit.
    """
    began = found.began
    with deps.database.transaction() as connection:
        target = _locked_target(connection, due)
        if target is None or target["lease_token"] != found.token or _is_older(began, target["last_checked_at"]):
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
            .values(
                last_checked_at=began,
                # What is remembered ends by itself, so the same answer is read again then.
                results_fingerprint=None if remembered else found.fingerprint,
                **SUCCESS,
            )
        )
        enqueue(connection, intents, deps.clock())
    return Recorded(sum(len(nights) for nights in comparison.openings.values()), len(intents))


SUCCESS: Mapping[str, int | None] = {
    "lease_token": None,
    "lease_until": None,
    "failures": 0,
    "failing_since": None,
    "error_category": None,
    "retry_at": None,
}


@lru_cache
def _unchanged(invite_only: bool) -> Update:  # noqa: FBT001  # lru_cache keys by position
    """Built once."""
    t, s = unique_targets.c, user_scans.c
    target = bindparam("target", type_=t.id.type)
    began = bindparam("began", type_=t.last_checked_at.type)
    waiting = exists().where(
        s.target_id == target, s.version != s.told_version, s.user_id == users.c.id, *eligible(invite_only=invite_only)
    )
    return (
        update(unique_targets)
        .where(
            t.id == target,
            t.lease_token == bindparam("token", type_=t.lease_token.type),
            t.results_fingerprint == bindparam("fingerprint", type_=t.results_fingerprint.type),
            or_(t.last_checked_at.is_(None), t.last_checked_at <= began),
            ~waiting,
        )
        .values(last_checked_at=began, **SUCCESS)
    )


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
        .where(user_scans.c.target_id == target["id"], *eligible(invite_only=settings.invite_only))
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
