"""A5 and the words of page 1: what a check found that the last successful one had not; unknown is neither."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from chalicelib.stays.campsites import Campsite
from chalicelib.stays.openings import Comparison, MonthAnswer, Result, SiteMonth, compare

NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)
JULY, AUGUST = date(2027, 7, 1), date(2027, 8, 1)
START, END = date(2027, 7, 29), date(2027, 8, 4)
ALL = [START + timedelta(days=day) for day in range(6)]
MINUTE = timedelta(minutes=1)


def answer(month: date, sites: Mapping[str, list[date] | None] | None) -> MonthAnswer:
    """What a site said of a month; None: nothing of any campsite."""
    if sites is None:
        return MonthAnswer(month, {}, blank=True)
    return MonthAnswer(
        month,
        {
            site_id: SiteMonth(Campsite(site_id), None if nights is None else frozenset(nights))
            for site_id, nights in sites.items()
        },
    )


def check(
    stored: Mapping[str, Result],
    july: Mapping[str, list[date] | None] | None,
    august: Mapping[str, list[date] | None] | None,
    now: datetime = NOW,
) -> Comparison:
    return compare(stored, [answer(JULY, july), answer(AUGUST, august)], START, END, now)


def held(comparison: Comparison) -> dict[str, list[date]]:
    return {site_id: sorted(result.nights) for site_id, result in comparison.results.items()}


def opened(comparison: Comparison) -> dict[str, list[date]]:
    return {site_id: sorted(nights) for site_id, nights in comparison.openings.items()}


JUL, AUG = [ALL[1], ALL[2]], [ALL[3]]


def test_on_a_target_never_checked_every_open_night_is_new() -> None:
    found = check({}, {"1": JUL}, {"1": AUG, "2": AUG})
    assert held(found) == opened(found) == {"1": [*JUL, *AUG], "2": AUG}


def test_what_was_stored_is_not_new_and_keeps_the_moment_when_it_was_found() -> None:
    first = check({}, {"1": JUL[:1]}, {"1": []})
    then = check(first.results, {"1": JUL}, {"1": []}, NOW + MINUTE)
    assert opened(then) == {"1": JUL[1:]}
    assert then.results["1"].nights == {JUL[0]: NOW, JUL[1]: NOW + MINUTE}


@pytest.mark.parametrize("july", [{"1": [JUL[0]]}, {"1": []}, {"2": []}, {}])
def test_a_night_or_a_site_missing_from_a_good_answer_is_not_open(july: dict[str, list[date] | None]) -> None:
    first = check({}, {"1": JUL}, {"2": AUG})
    then = check(first.results, july, {"2": AUG}, NOW + MINUTE)
    assert held(then) == {**{site: nights for site, nights in july.items() if nights}, "2": AUG}
    assert opened(then) == {}


def test_what_closed_and_opens_again_is_new_again() -> None:
    first = check({}, {"1": JUL}, {"1": []})
    closed = check(first.results, {"1": []}, {"1": []}, NOW + MINUTE)
    assert opened(check(closed.results, {"1": JUL}, {"1": []}, NOW + 2 * MINUTE)) == {"1": JUL}


@pytest.mark.parametrize("night", [START - timedelta(days=1), END])
def test_nights_outside_the_range_do_not_count(night: date) -> None:
    month = night.replace(day=1)
    assert compare({}, [answer(month, {"1": [night]})], START, END, NOW).results == {}


UNKNOWN = [{"1": None, "2": []}, None]


@pytest.mark.parametrize("july", UNKNOWN)
def test_what_is_unknown_is_kept_and_raised_neither_now_nor_when_it_is_seen_again(
    july: dict[str, list[date] | None] | None,
) -> None:
    first = check({}, {"1": JUL}, {"1": AUG})
    silent = check(first.results, july, {"1": AUG}, NOW + MINUTE)
    assert held(silent) == held(first)
    assert opened(silent) == {}
    assert silent.results["1"].known_nights() == set(AUG)
    again = check(silent.results, {"1": JUL}, {"1": AUG}, NOW + 2 * MINUTE)
    assert (held(again), opened(again)) == (held(first), {})
    assert again.results["1"].nights[JUL[0]] == NOW
    assert again.seen_again == {"1": dict.fromkeys(JUL, NOW + MINUTE)}


@pytest.mark.parametrize("july", UNKNOWN)
@pytest.mark.parametrize(("hours", "kept"), [(23.99, True), (24.01, False)])
def test_what_is_unknown_is_kept_for_24_hours_at_most(
    july: dict[str, list[date] | None] | None, hours: float, kept: bool
) -> None:
    first = check({}, {"1": JUL}, {"2": []})
    silent = check(first.results, july, {"2": []}, NOW + MINUTE)
    later = check(silent.results, july, {"2": []}, NOW + MINUTE + timedelta(hours=hours))
    assert held(later) == ({"1": JUL} if kept else {})


def test_what_was_unknown_for_too_long_is_new_when_it_is_seen_again() -> None:
    first = check({}, {"1": JUL}, {"2": []})
    gone = check(check(first.results, None, {}, NOW).results, None, {}, NOW + timedelta(hours=25))
    assert opened(check(gone.results, {"1": JUL}, {}, NOW + timedelta(hours=26))) == {"1": JUL}


def test_a_night_that_opened_while_its_month_was_unknown_is_new_when_it_is_seen() -> None:
    first = check({}, {"1": JUL[:1]}, {"2": []})
    silent = check(first.results, None, {"2": []}, NOW + MINUTE)
    assert opened(check(silent.results, {"1": JUL}, {"2": []}, NOW + 2 * MINUTE)) == {"1": JUL[1:]}


def test_a_site_of_which_nothing_is_known_but_its_existence_is_no_result() -> None:
    assert check({}, {"1": None}, None).results == {}


@pytest.mark.parametrize("july", UNKNOWN)
def test_what_is_known_of_a_campsite_outlives_an_answer_that_says_nothing_of_its_nights(
    july: dict[str, list[date] | None] | None,
) -> None:
    """The answers of silent months are not completed by metadata, which nobody may lose for it."""
    plain = Campsite("1", provider_type="YURT")
    stored = {"1": Result(replace(plain, accessible=True), dict.fromkeys(JUL, NOW))}
    answers = [answer(JULY, july), MonthAnswer(AUGUST, {"1": SiteMonth(plain, frozenset())})]
    assert compare(stored, answers, START, END, NOW).results["1"].campsite.accessible is True


def test_metadata_completes_the_campsites_of_an_answer() -> None:
    plain = answer(JULY, {"1": JUL, "2": JUL})
    described = plain.described({"1": Campsite("1", accessible=True)})
    assert described.sites["1"].campsite.accessible is True
    assert described.sites["2"] == plain.sites["2"]
    assert replace(described, sites=plain.sites) == plain


# --- any sequence of answers, against an oracle that keeps a diary of each night -----------------------------

SITE_MONTH = st.none() | st.sets(st.sampled_from(ALL)).map(sorted)
MONTHS = st.none() | st.dictionaries(st.sampled_from(["1", "2"]), SITE_MONTH)
STEPS = st.lists(st.tuples(MONTHS, MONTHS, st.sampled_from([1, 600, 1439])), min_size=1, max_size=8)


@given(STEPS)
def test_any_sequence_of_answers_opens_and_closes_what_a_diary_of_each_night_says(
    steps: list[tuple[dict[str, list[date] | None] | None, dict[str, list[date] | None] | None, int]],
) -> None:
    stored: Mapping[str, Result] = {}
    diary: dict[tuple[str, date], datetime] = {}  # open nights: when each was found
    silent: dict[tuple[str, date], datetime] = {}  # (site, month): since when nothing was said of what is held
    now = NOW
    for july, august, minutes in steps:
        july, august = _of(JULY, july), _of(AUGUST, august)  # noqa: PLW2901
        new = set[tuple[str, date]]()
        for month, said in ((JULY, july), (AUGUST, august)):
            for site in ("1", "2"):
                there = {night for known, night in diary if known == site and night.replace(day=1) == month}
                unknown = said is None or (site in said and said[site] is None)
                if unknown and there:
                    since = silent.setdefault((site, month), now)
                    if now - since >= timedelta(hours=24):
                        del silent[site, month]
                        diary = {key: at for key, at in diary.items() if key not in {(site, n) for n in there}}
                elif not unknown:
                    silent.pop((site, month), None)
                    seen = set((said or {}).get(site) or [])
                    new |= {(site, night) for night in seen - there}
                    for night in there - seen:
                        del diary[site, night]
                    diary |= {(site, night): now for night in seen - there}
        found = check(stored, july, august, now)
        assert {(site, night): at for site, result in found.results.items() for night, at in result.nights.items()} == (
            diary
        )
        assert {(site, night) for site, nights in found.openings.items() for night in nights} == new
        assert {
            (site, month): since
            for site, result in found.results.items()
            for month, since in result.unknown_since.items()
        } == silent
        stored, now = found.results, now + minutes * MINUTE


def _of(month: date, said: dict[str, list[date] | None] | None) -> dict[str, list[date] | None] | None:
    """An answer tells nights of its month alone."""
    if said is None:
        return None
    return {
        site: None if nights is None else [night for night in nights if night.replace(day=1) == month]
        for site, nights in said.items()
    }
