"""Each command over stand-ins: its JSON, its words, its exit codes."""

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import click
import pytest
from click.testing import Result
from sqlalchemy import text

from chalicelib.channels.outcomes import DeliveryErrorCategory, Outcome, OutcomeClass
from chalicelib.cli.main import cli
from chalicelib.cli.outbox import STATUSES
from chalicelib.cli.scans import WEEKDAYS
from chalicelib.db.scan_rows import filters_of
from chalicelib.db.tables import notification_outbox, user_scans, users
from chalicelib.deps import Deps
from chalicelib.outbox.states import Status
from chalicelib.stays.filters import Filters
from tests.cli.conftest import Invoke
from tests.support.rows import add_channel, add_scan, add_user
from tests.support.standins import NOW, World

ADD = (
    "scans add --user ann@example.org --provider recreation_gov --campground 232447 "
    "--from 2027-07-10 --until 2027-07-20"
)


def _json(result: Result) -> Any:
    """The result, which must be all of standard output."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def _refusal(result: Result) -> Any:
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output
    return json.loads(result.stdout)


# --- users -----------------------------------------------------------------------------------------------------------


def test_users_add_gives_id_and_email(invoke: Invoke, world: World) -> None:
    told = _json(invoke("users", "add", "--email", "Ann@Example.org", "--admin", "--json"))
    assert set(told) == {"id", "email"}
    assert told["email"] == "ann@example.org"
    with world.deps.database.reading() as connection:
        assert connection.execute(users.select()).mappings().one()["is_admin"]


def test_a_taken_address_fails_and_names_the_user(invoke: Invoke, world: World) -> None:
    user_id = add_user(world.deps)
    refused = _refusal(invoke("users", "add", "--email", "ann@example.org", "--json"))
    assert refused["id"] == str(user_id)
    assert str(user_id) in refused["error"]


def test_users_are_suspended_restored_and_invited_by_address(invoke: Invoke, world: World) -> None:
    add_user(world.deps)
    assert _json(invoke("users", "suspend", "ann@example.org", "--json"))["scanning_enabled"] is False
    assert "suspended" in invoke("users", "list").stdout
    assert _json(invoke("users", "restore", "ANN@example.org", "--json"))["scanning_enabled"] is True
    assert _json(invoke("users", "invite", "ann@example.org", "--json"))["invited_at"] == "2027-07-01T12:00:00.123456Z"


def test_users_list_walks_all_pages(invoke: Invoke, world: World) -> None:
    assert "nobody" in invoke("users", "list").stdout
    with world.deps.database.transaction() as connection:
        rows = [{"id": uuid4(), "email": f"p{number:03}@example.org", "created_at": NOW} for number in range(205)]
        connection.execute(users.insert(), rows)
    assert len(_json(invoke("users", "list", "--json"))) == 205


def test_an_unknown_user_fails(invoke: Invoke) -> None:
    assert "nobody@example.org" in _refusal(invoke("users", "suspend", "nobody@example.org", "--json"))["error"]


# --- channels --------------------------------------------------------------------------------------------------------


def test_channels_add_reads_the_recipient_from_standard_input(invoke: Invoke, world: World) -> None:
    add_user(world.deps)
    result = invoke(
        "channels", "add", "--user", "ann@example.org", "--kind", "pushover", "--to", "-", "--json", stdin="u-ann\n"
    )
    channel_id = _json(result)["id"]
    [listed] = _json(invoke("channels", "list", "--user", "ann@example.org", "--json"))
    assert (listed["id"], listed["kind"], listed["enabled"], listed["has_recipient"]) == (
        channel_id,
        "pushover",
        True,
        True,
    )
    assert "u-ann" not in result.output + invoke("channels", "list", "--user", "ann@example.org").output


def test_a_recipient_on_the_command_line_is_a_usage_error_and_not_repeated(invoke: Invoke, world: World) -> None:
    add_user(world.deps)
    result = invoke("channels", "add", "--user", "ann@example.org", "--kind", "pushover", "--to", "u-hunter2")
    assert result.exit_code == 2
    assert "u-hunter2" not in result.output


def test_a_recipient_that_is_missing_or_cannot_be_fails(invoke: Invoke, world: World) -> None:
    add_user(world.deps)
    add = ("channels", "add", "--user", "ann@example.org", "--kind", "pushover")
    assert invoke(*add).exit_code == 2
    refused = _refusal(invoke(*add, "--json", stdin="hunter2"))
    assert "hunter2" not in refused["error"]


def test_channels_test_succeeds_only_when_the_message_was_accepted(invoke: Invoke, world: World) -> None:
    channel_id = add_channel(world.deps, add_user(world.deps))
    told = _json(invoke("channels", "test", channel_id, "--json"))
    assert told == {"outcome": "accepted", "category": None, "message_id": "m-1"}
    world.channel.outcome = Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.INVALID_RECIPIENT)
    refused = _refusal(invoke("channels", "test", channel_id, "--json"))
    assert (refused["outcome"], refused["category"]) == ("permanent", "invalid_recipient")


def test_channels_are_enabled_and_removed(invoke: Invoke, world: World) -> None:
    channel_id = add_channel(world.deps, add_user(world.deps))
    assert invoke("channels", "enable", channel_id).exit_code == 0
    assert invoke("channels", "remove", channel_id).exit_code == 0
    assert str(channel_id) in _refusal(invoke("channels", "remove", channel_id, "--json"))["error"]
    assert invoke("channels", "remove", "not-an-id").exit_code == 2


# --- scans -----------------------------------------------------------------------------------------------------------


def test_scans_add_gives_id_and_target(invoke: Invoke, world: World) -> None:
    add_user(world.deps)
    told = _json(invoke(*ADD.split(), "--json"))
    with world.deps.database.reading() as connection:
        row = connection.execute(user_scans.select()).mappings().one()
    assert told == {"id": str(row["id"]), "target_id": str(row["target_id"])}
    assert (row["mode"], filters_of(row)) == ("summary", Filters())


def test_scans_add_takes_every_filter(invoke: Invoke, world: World) -> None:
    user_id = add_user(world.deps)
    channel_id = add_channel(world.deps, user_id)
    words = (
        "--nights 2 --mode direct --type tent --type rv --electric --accessible --people 4 --equipment Trailer "
        "--equipment-length 24 --loop A --loop B --not-loop C --campsite 044 --not-campsite 045 --arrive-on fri "
        f"--arrive-on SAT --channel {channel_id}"
    )
    _json(invoke(*ADD.split(), *words.split(), "--json"))
    with world.deps.database.reading() as connection:
        row = connection.execute(user_scans.select()).mappings().one()
    assert (row["mode"], row["channel_id"]) == ("direct", channel_id)
    assert filters_of(row) == Filters(
        min_stay_length=2,
        preferred_types=frozenset({"tent", "rv"}),
        require_electric=True,
        require_accessible=True,
        people=4,
        equipment="Trailer",
        equipment_length=24,
        loops_wanted=frozenset({"A", "B"}),
        loops_unwanted=frozenset({"C"}),
        campsites_wanted=frozenset({"044"}),
        campsites_unwanted=frozenset({"045"}),
        arrival_weekdays=frozenset({4, 5}),
    )
    [line] = invoke("scans", "list").stdout.splitlines()[1:]
    for word in (
        "Upper Pines",
        "2 nights or more",
        "rv or tent",
        "electric",
        "Trailer of 24 ft",
        "not loop C",
        "fri or sat",
    ):
        assert word in line


def test_a_duplicate_scan_fails_and_names_the_existing_one(invoke: Invoke, world: World) -> None:
    scan_id = add_scan(world.deps, add_user(world.deps))
    result = invoke(*ADD.split(), "--json")
    assert _refusal(result)["id"] == str(scan_id)
    assert str(scan_id) in result.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--from 2027-02-30", 2),
        ("--from soon", 2),
        ("--until 2027-07-10", 2),
        ("--nights 0", 2),
        ("--people 0", 2),
        ("--type igloo", 2),
        ("--mode loud", 2),
        ("--arrive-on someday", 2),
        ("--from 2027-05-01 --until 2027-05-03", 1),
        ("--provider reserve_pluto", 1),
        ("--campground 999", 1),
        ("--nights 11", 1),
        ("--user nobody@example.org", 1),
    ],
)
def test_what_cannot_be_watched_fails_and_what_cannot_be_read_is_usage(
    invoke: Invoke, world: World, words: str, code: int
) -> None:
    add_user(world.deps)
    result = invoke(*ADD.split(), *words.split(), "--json")
    assert result.exit_code == code
    assert bool(result.stdout) == (code == 1)
    assert "Traceback" not in result.output
    with world.deps.database.reading() as connection:
        assert connection.execute(user_scans.select()).first() is None


def test_scans_show_tells_how_it_stands(invoke: Invoke, world: World) -> None:
    scan_id = add_scan(world.deps, add_user(world.deps))
    shown = _json(invoke("scans", "show", scan_id, "--json"))
    assert (shown["id"], shown["state"], shown["results"]) == (str(scan_id), "no_channel", [])
    words = invoke("scans", "show", scan_id).stdout
    for part in ("Upper Pines", "2027-07-10 → 2027-07-20", "no working channel", "nothing open now", "never"):
        assert part in words


def test_scans_are_paused_resumed_listed_and_removed(invoke: Invoke, world: World) -> None:
    scan_id = add_scan(world.deps, add_user(world.deps))
    add_scan(world.deps, add_user(world.deps, "bob@example.org"))
    assert _json(invoke("scans", "pause", scan_id, "--json")) == {"id": str(scan_id), "is_active": False}
    assert _json(invoke("scans", "resume", scan_id, "--json")) == {"id": str(scan_id), "is_active": True}
    assert len(_json(invoke("scans", "list", "--json"))) == 2
    [own] = _json(invoke("scans", "list", "--user", "ann@example.org", "--json"))
    assert own["id"] == str(scan_id)
    assert _json(invoke("scans", "remove", scan_id, "--json")) == {"id": str(scan_id)}
    _refusal(invoke("scans", "show", scan_id, "--json"))


# --- the outbox, runs, keys ------------------------------------------------------------------------------------------


def test_outbox_list_has_the_pinned_shape_and_knows_statuses(invoke: Invoke, world: World) -> None:
    first = _outbox_row(world.deps, status="pending", created_at=NOW)
    last = _outbox_row(
        world.deps,
        status="skipped",
        created_at=NOW + timedelta(seconds=1),
        finished_at=NOW,
        error_category="dates_passed",
    )
    rows = _json(invoke("outbox", "list", "--json"))
    assert [row["id"] for row in rows] == [first, last]
    assert rows[1] == {
        "id": last,
        "status": "skipped",
        "attempt_count": 0,
        "delivery_key": "summary",
        "error_category": "dates_passed",
        "next_attempt_at": "2027-07-01T12:00:00.123456Z",
        "finished_at": "2027-07-01T12:00:00.123456Z",
        "created_at": "2027-07-01T12:00:01.123456Z",
    }
    assert [row["id"] for row in _json(invoke("outbox", "list", "--status", "pending", "--json"))] == [first]
    assert "dates_passed" in invoke("outbox", "list").stdout
    assert invoke("outbox", "list", "--status", "lost").exit_code == 2


def test_outbox_show_tells_one_row_whole(invoke: Invoke, world: World) -> None:
    row_id = _outbox_row(world.deps, status="pending", created_at=NOW)
    shown = _json(invoke("outbox", "show", row_id, "--json"))
    assert (shown["payload"]["title"], shown["scan_id"], shown["told"]) == ("Upper Pines", None, None)
    assert "Upper Pines" in invoke("outbox", "show", row_id).stdout
    _refusal(invoke("outbox", "show", uuid4(), "--json"))


def test_the_statuses_are_those_of_the_outbox() -> None:
    assert set(STATUSES) == {status.value for status in Status}


def test_weekdays_count_from_monday() -> None:
    assert [NOW.replace(day=5 + day).strftime("%a").lower() for day in range(7)] == list(WEEKDAYS)


@pytest.mark.parametrize("job", ["detect", "drain", "prune"])
def test_run_prints_the_functions_result_alone(invoke: Invoke, job: str) -> None:
    told = _json(invoke("run", job, "--json"))
    assert (told["job"], told["outcome"]) == (job, "success")
    assert set(told) == {"job", "run_id", "started_at", "finished_at", "outcome", "counts", "history"}
    assert f"{job}: success (nothing to do)" in invoke("run", job).stdout


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # PostgreSQL's tables serve the next test too
def test_a_run_that_breaks_fails(invoke: Invoke, world: World) -> None:
    with world.deps.database.transaction() as connection:
        connection.execute(text("ALTER TABLE notification_outbox RENAME TO elsewhere"))
    result = invoke("run", "drain", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)
    assert "Traceback" not in result.output


def test_keys_rotate_counts_what_it_encrypted(invoke: Invoke, world: World) -> None:
    add_channel(world.deps, add_user(world.deps))
    assert _json(invoke("keys", "rotate", "--json")) == {"rotated": 1, "unreadable": []}


def test_catalog_search_gives_a_list(invoke: Invoke, world: World) -> None:
    add_scan(world.deps, add_user(world.deps))  # looks its campground up
    [found] = _json(invoke("catalog", "search", "pines", "upper", "--json"))
    assert (found["provider"], found["entity_id"], found["name"]) == ("recreation_gov", "232447", "Upper Pines")
    assert "catalog sync" in invoke("catalog", "search", "nowhere").stdout


def test_a_fault_of_the_code_is_told_without_its_text(invoke: Invoke, world: World) -> None:
    channel_id = add_channel(world.deps, add_user(world.deps))

    def fail() -> None:
        raise KeyError("u-hunter2")

    world.channel.while_sending = fail
    refused = _refusal(invoke("channels", "test", channel_id, "--json"))
    assert "KeyError" in refused["error"]
    assert "hunter2" not in refused["error"]


def test_every_command_explains_itself(invoke: Invoke) -> None:
    def walk(command: click.Command, words: tuple[str, ...]) -> None:
        assert command.help, words
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (words, parameter.name)
        if isinstance(command, click.Group):
            for name, child in command.commands.items():
                walk(child, (*words, name))
        result = invoke(*words, "--help")
        assert result.exit_code == 0
        assert "Usage:" in result.stdout

    walk(cli, ())


def _outbox_row(deps: Deps, **values: Any) -> str:
    row_id = uuid4()
    with deps.database.transaction() as connection:
        connection.execute(
            notification_outbox.insert().values(
                id=row_id,
                detection_id=uuid4(),
                delivery_key="summary",
                payload={"title": "Upper Pines", "message": "site 044", "booking_url": "https://booking.example"},
                next_attempt_at=NOW,
                **values,
            )
        )
    return str(row_id)
