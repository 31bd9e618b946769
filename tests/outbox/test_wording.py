"""A9: the words of an alert."""

from dataclasses import replace
from datetime import UTC, datetime

from chalicelib.outbox.payload import Opening
from chalicelib.outbox.wording import Place, compose, message_of
from tests.outbox.camp import END, START, july, site
from tests.support.standins import SITE

SEEN_AT = datetime(2027, 7, 1, tzinfo=UTC)
PLACE = Place.of(SITE, "100", "Upper Pines", START, END)


def test_a_run_shorter_than_the_sites_minimum_stay_says_so() -> None:
    opening = Opening(replace(site(), min_stay=3), tuple(july(2, 3, 10, 11, 12)), "https://booking.example/101")
    alert = compose(PLACE, [opening], SEEN_AT, summary=False)
    (line,) = message_of(alert).items
    assert line == (
        "Site 101 (A): Fri 2 Jul → Sun 4 Jul, 2 nights (min. stay 3 nights); Sat 10 Jul → Tue 13 Jul, 3 nights"
    )
    assert alert.message == line


def test_a_site_without_a_minimum_stay_says_nothing_of_one() -> None:
    opening = Opening(site(), tuple(july(2)), "https://booking.example/101")
    assert "min. stay" not in compose(PLACE, [opening], SEEN_AT, summary=False).message
