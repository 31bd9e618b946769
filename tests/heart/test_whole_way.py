"""The whole way: a site opens at the booking site, and a message arrives; over HTTP, on both databases."""

from datetime import date

from tests.support.live import APP_TOKEN, USER_KEY, Live

NIGHTS = [date(2027, 7, 9), date(2027, 7, 10)]


def test_an_opening_becomes_one_message_with_its_nights_and_a_link(live: Live) -> None:
    live.camper()
    assert live.detect().counts["targets_checked"] == 1
    assert live.rows() == []

    live.site.open("100", "103", NIGHTS)
    found = live.checked_again()
    assert (found.outcome, found.counts["openings"], found.counts["intents"]) == ("success", 2, 1)
    row = live.row()
    assert (row["status"], row["delivery_key"], row["attempt_count"]) == ("pending", "summary", 0)
    assert USER_KEY not in str(dict(row))
    assert APP_TOKEN not in str(dict(row))

    sent = live.drain()
    assert (sent.outcome, sent.counts["claimed"], sent.counts["sent"]) == ("success", 1, 1)
    (message,) = live.push.messages
    assert message.user == USER_KEY
    assert "Fri 9 Jul → Sun 11 Jul, 2 nights" in message.message
    assert "003" in message.message
    assert message.url == "https://www.recreation.gov/camping/campgrounds/100"
    row = live.row()
    assert (row["status"], row["attempt_count"], row["finished_at"]) == ("sent", 1, live.clock())
    assert row["provider_message_id"]
    (story,) = live.history()
    assert (story["outcome"], story["nights"]) == ("sent", {"103": ["2027-07-09", "2027-07-10"]})


def test_what_does_not_change_is_told_once(live: Live) -> None:
    live.camper()
    live.site.open("100", "103", NIGHTS)
    live.detect()
    live.drain()
    for _ in range(3):
        assert live.checked_again().counts["intents"] == 0
        live.drain()
    assert len(live.push.messages) == 1


def test_what_closes_and_opens_again_is_news_again(live: Live) -> None:
    live.camper()
    live.site.open("100", "103", NIGHTS)
    live.detect()
    live.drain()
    live.site.take("100", "103", NIGHTS)
    live.checked_again()
    assert live.results() == {}
    live.site.open("100", "103", NIGHTS)
    assert live.checked_again().counts["intents"] == 1
    live.drain()
    first, second = live.rows()
    assert first["detection_id"] != second["detection_id"]
    assert len(live.push.messages) == 2
