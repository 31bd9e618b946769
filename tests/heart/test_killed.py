"""Killed between any two steps and run again: nothing lost, and no double but after an interrupted send."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

import pytest

from tests.support.killed import Instance, run_apart, start_apart
from tests.support.live import APP_TOKEN, SECRET_KEY, SITES, Live

KILLED = -9


@pytest.fixture
def instance(live: Live, database_url: str) -> Instance:
    return Instance(database_url, [SECRET_KEY], live.site.url, live.push.url, APP_TOKEN, live.clock())


def openings(live: Live) -> Iterator[str]:
    """Open one lone night after the other, and say how a message tells it."""
    for site in SITES:
        for day in range(2, 30, 2):
            night = date(2027, 7, day)
            live.site.open("100", site.id, night)
            yield f"{site.name} (Loop A):</b> {night:%a} {day} Jul → {night + timedelta(1):%a} {day + 1} Jul, 1 night"


def finish(live: Live) -> None:
    """What the next runs do, once leases and backoffs are over."""
    for _ in range(3):
        live.clock.advance(minutes=5)
        live.detect()
        live.drain()


def told(live: Live, words: str) -> int:
    return sum(message.message.count(words) for message in live.push.messages)


def test_a_killed_detect_loses_nothing_and_tells_nothing_twice(live: Live, instance: Instance) -> None:
    live.camper()
    live.detect()
    die_at = 0
    for die_at, words in enumerate(openings(live), start=1):
        live.clock.advance(minutes=5)
        ended = run_apart(replace(instance, now=live.clock()), "detect", die_at)
        finish(live)
        assert told(live, words) == 1, f"killed at step {die_at}"
        if ended != KILLED:
            break
    assert die_at > 10


def test_a_killed_drain_loses_nothing_and_repeats_only_what_was_on_its_way(live: Live, instance: Instance) -> None:
    live.camper()
    live.detect()
    doubles = die_at = 0
    for die_at, words in enumerate(openings(live), start=1):
        live.checked_again()
        ended = run_apart(replace(instance, now=live.clock()), "drain", die_at)
        interrupted = ended == KILLED and told(live, words) == 1
        finish(live)
        row = live.rows()[-1]
        assert (row["status"], row["attempt_count"] <= 2) == ("sent", True), f"killed at step {die_at}"
        if row["attempt_count"] == 2 and interrupted:
            doubles += 1
            assert told(live, words) == 2
        else:
            assert told(live, words) == 1, f"killed at step {die_at}"
        if ended != KILLED:
            break
    assert die_at > 8
    assert doubles > 0  # the acknowledgement was among the steps


def test_a_message_killed_again_and_again_is_given_up_after_four_attempts(live: Live, instance: Instance) -> None:
    live.camper()
    next(openings(live))
    live.detect()
    steps = steps_until_sent(live, instance)
    for _ in range(6):
        run_apart(replace(instance, now=live.clock()), "drain", steps)
        live.clock.advance(minutes=5)
    live.drain()
    row = live.row()
    assert (row["status"], row["attempt_count"], row["error_category"]) == ("failed", 4, "attempts_exhausted")
    assert len(live.push.attempts) == 4


def steps_until_sent(live: Live, instance: Instance) -> int:
    """The first step of a drain that comes after its message was accepted; costs the row its first attempt."""
    for die_at in range(1, 40):
        run_apart(replace(instance, now=live.clock()), "drain", die_at)
        if live.push.attempts:
            return die_at
        live.clock.advance(minutes=5)
    raise AssertionError("never sent")


@pytest.mark.parametrize("job", ["detect", "drain"])
def test_two_processes_at_once_tell_it_once(live: Live, instance: Instance, job: str) -> None:
    live.camper()
    words = next(openings(live))
    if job == "drain":
        live.detect()
    racing = [start_apart(replace(instance, now=live.clock()), job) for _ in range(3)]
    for process in racing:
        process.join(60)
        assert process.exitcode == 0
    assert len(live.rows()) == 1
    finish(live)
    assert told(live, words) == 1
