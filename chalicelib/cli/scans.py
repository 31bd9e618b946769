"""`scans …`: what people ask to be told about."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import click

from chalicelib.cli.output import emit, json_option, table, utc, wired
from chalicelib.stays.campsites import TYPES

if TYPE_CHECKING:
    from chalicelib.deps import Deps
    from chalicelib.scans.views import ScanDetail, ScanView
    from chalicelib.stays.filters import Filters

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.group(short_help="What people ask to be told about.")
def scans() -> None:
    """What people ask to be told about: add, list, show, pause, resume, remove."""


@scans.command()
@click.option("--user", "email", required=True, metavar="EMAIL", help="Who is told.")
@click.option("--provider", required=True, help="The booking site: recreation_gov.")
@click.option("--campground", required=True, metavar="ID", help="The campground's id there: `catalog search` finds it.")
@click.option("--from", "start", required=True, type=DAY, metavar="YYYY-MM-DD", help="The first night.")
@click.option("--until", "end", required=True, type=DAY, metavar="YYYY-MM-DD", help="The checkout day.")
@click.option("--nights", type=click.IntRange(min=1), default=1, show_default=True, help="At least so many in a row.")
@click.option(
    "--mode",
    type=click.Choice(["summary", "direct"]),
    default="summary",
    show_default=True,
    help="One message for all campsites that open, or one for each.",
)
@click.option("--type", "types", type=click.Choice(TYPES), multiple=True, help="Sites of this type (repeatable).")
@click.option("--electric", is_flag=True, help="Only sites with electricity.")
@click.option("--accessible", is_flag=True, help="Only accessible sites.")
@click.option("--people", type=click.IntRange(min=1), metavar="N", help="Only sites for so many people.")
@click.option("--equipment", metavar="NAME", help='Only sites that permit it: tent, rv, or a name such as "Trailer".')
@click.option("--equipment-length", type=click.IntRange(min=1), metavar="FEET", help="And of this length.")
@click.option("--loop", "loops", multiple=True, metavar="NAME", help="Only in this loop (repeatable).")
@click.option("--not-loop", "not_loops", multiple=True, metavar="NAME", help="Not in this loop (repeatable).")
@click.option("--campsite", "campsites", multiple=True, metavar="ID", help="Only this one, by id or name (repeatable).")
@click.option("--not-campsite", "not_campsites", multiple=True, metavar="ID", help="Not this one (repeatable).")
@click.option(
    "--arrive-on", type=click.Choice(WEEKDAYS, case_sensitive=False), multiple=True, help="Arriving then (repeatable)."
)
@click.option("--channel", "channel_id", type=click.UUID, metavar="ID", help="By this channel, not the oldest enabled.")
@json_option
def add(
    *,
    email: str,
    provider: str,
    campground: str,
    start: datetime,
    end: datetime,
    nights: int,
    mode: str,
    types: tuple[str, ...],
    electric: bool,
    accessible: bool,
    people: int | None,
    equipment: str | None,
    equipment_length: int | None,
    loops: tuple[str, ...],
    not_loops: tuple[str, ...],
    campsites: tuple[str, ...],
    not_campsites: tuple[str, ...],
    arrive_on: tuple[str, ...],
    channel_id: UUID | None,
) -> None:
    """Watch a campground. What a booking site does not tell of a campsite never passes a filter that asks for it."""
    if start >= end:
        raise click.BadParameter("the checkout day must come after the first night", param_hint="--until")
    from chalicelib.accounts.users import find
    from chalicelib.db.audit import OPERATOR
    from chalicelib.scans.changes import add
    from chalicelib.scans.request import ScanRequest
    from chalicelib.stays.filters import Filters

    filters = Filters(
        min_stay_length=nights,
        preferred_types=frozenset(types),
        require_electric=electric,
        require_accessible=accessible,
        people=people,
        equipment=equipment,
        equipment_length=equipment_length,
        loops_wanted=frozenset(loops),
        loops_unwanted=frozenset(not_loops),
        campsites_wanted=frozenset(campsites),
        campsites_unwanted=frozenset(not_campsites),
        arrival_weekdays=frozenset(WEEKDAYS.index(day) for day in arrive_on),
    )
    request = ScanRequest(provider, campground, start.date(), end.date(), filters, mode, channel_id)
    with wired() as deps:
        added = add(deps, find(deps, email).id, request, by=OPERATOR)
    emit({"id": str(added.id), "target_id": str(added.target_id)}, f"added scan {added.id}")


@scans.command("list")
@click.option("--user", "email", metavar="EMAIL", help="Only this person's.")
@json_option
def list_(email: str | None) -> None:
    """List scans and how they stand."""
    with wired() as deps:
        found = list(_all(deps, email))
    emit(
        [scan.to_json() for scan in found],
        table(
            ("id", "campground", "from", "until", "wants", "state", "last check"),
            (
                (
                    str(scan.id),
                    scan.campground_name or f"{scan.provider} {scan.campground_id}",
                    scan.start_date.isoformat(),
                    scan.end_date.isoformat(),
                    _wishes(scan.filters),
                    scan.standing.word.replace("_", " "),
                    utc(scan.standing.last_checked_at),
                )
                for scan in found
            ),
            none="No scan yet: `scans add …`.",
        ),
    )


@scans.command()
@click.argument("scan_id", metavar="ID", type=click.UUID)
@json_option
def show(scan_id: UUID) -> None:
    """Show a scan, how it stands, and what is open for it now."""
    from chalicelib.db.audit import OPERATOR
    from chalicelib.scans.views import show

    with wired() as deps:
        detail = show(deps, scan_id, by=OPERATOR)
    emit(detail.to_json(), _lines(detail))


@scans.command()
@click.argument("scan_id", metavar="ID", type=click.UUID)
@json_option
def pause(scan_id: UUID) -> None:
    """Neither check for a scan nor tell of it."""
    from chalicelib.db.audit import OPERATOR
    from chalicelib.scans.changes import pause

    with wired() as deps:
        pause(deps, scan_id, by=OPERATOR)
    emit({"id": str(scan_id), "is_active": False}, f"paused scan {scan_id}")


@scans.command()
@click.argument("scan_id", metavar="ID", type=click.UUID)
@json_option
def resume(scan_id: UUID) -> None:
    """Go on with a paused scan; what is open then is told."""
    from chalicelib.db.audit import OPERATOR
    from chalicelib.scans.changes import resume

    with wired() as deps:
        resume(deps, scan_id, by=OPERATOR)
    emit({"id": str(scan_id), "is_active": True}, f"resumed scan {scan_id}")


@scans.command()
@click.argument("scan_id", metavar="ID", type=click.UUID)
@json_option
def remove(scan_id: UUID) -> None:
    """Forget a scan."""
    from chalicelib.db.audit import OPERATOR
    from chalicelib.scans.changes import remove

    with wired() as deps:
        remove(deps, scan_id, by=OPERATOR)
    emit({"id": str(scan_id)}, f"removed scan {scan_id}")


def _all(deps: "Deps", email: str | None) -> Iterator["ScanView"]:
    from chalicelib.accounts.users import find
    from chalicelib.db.audit import OPERATOR
    from chalicelib.scans.views import page

    user_id = find(deps, email).id if email else None
    after = None
    while found := page(deps, by=OPERATOR, user_id=user_id, after=after):
        yield from found
        after = found[-1].created_at, found[-1].id


def _lines(detail: "ScanDetail") -> Iterator[str]:
    scan, standing = detail.scan, detail.scan.standing
    yield f"{scan.campground_name or 'Campground'} ({scan.provider} {scan.campground_id})"
    yield f"dates       {scan.start_date} → {scan.end_date} (checkout)"
    yield f"wants       {_wishes(scan.filters)}"
    yield f"tells       {'each campsite by itself' if scan.mode == 'direct' else 'one summary'}"
    yield f"state       {standing.word.replace('_', ' ')}"
    yield f"last check  {utc(standing.last_checked_at, otherwise='never')}"
    yield f"next check  {utc(standing.next_check_at, otherwise='none')}"
    if standing.unavailable_since:
        yield f"unavailable since {utc(standing.unavailable_since)} ({standing.error_category or 'unknown'})"
    if not standing.has_working_channel:
        yield "no working channel: nobody would be told (`channels add`)"
    yield "open now:" if detail.results else "nothing open now"
    for found in detail.results:
        campsite = found.result.campsite
        kind = ", ".join(part for part in (campsite.loop, campsite.provider_type) if part)
        yield f"  {campsite.name or campsite.id}{f' ({kind})' if kind else ''}"
        yield from (f"    {stay}" for stay in found.stays(scan.filters))
        yield f"    first seen {utc(min(found.result.nights[night] for night in found.nights))}"
        if found.link:
            yield f"    {found.link}"


def _wishes(filters: "Filters") -> str:
    """What a scan wants, in words."""
    wishes = [f"{filters.min_stay_length} nights or more" if filters.min_stay_length > 1 else "any night"]
    wishes += [" or ".join(sorted(filters.preferred_types))] if filters.preferred_types else []
    wishes += ["electric"] if filters.require_electric else []
    wishes += ["accessible"] if filters.require_accessible else []
    wishes += [f"for {filters.people}"] if filters.people else []
    if filters.equipment:
        wishes.append(f"{filters.equipment}{f' of {filters.equipment_length} ft' if filters.equipment_length else ''}")
    for words, names in (
        ("loop", filters.loops_wanted),
        ("not loop", filters.loops_unwanted),
        ("campsite", filters.campsites_wanted),
        ("not campsite", filters.campsites_unwanted),
        ("arriving", frozenset(WEEKDAYS[day] for day in filters.arrival_weekdays)),
    ):
        wishes += [f"{words} {' or '.join(sorted(names))}"] if names else []
    return ", ".join(wishes)
