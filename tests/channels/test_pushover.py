import html
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from hypothesis import given, strategies as st
from pydantic import SecretStr

from chalicelib.channels.contract import Message, RecipientError
from chalicelib.channels.outcomes import DeliveryErrorCategory as Category, Outcome, OutcomeClass as Class
from chalicelib.channels.pushover import Pushover, PushoverConfig, texts
from sandbox.push_rules import Outcome as Scripted, Reply
from sandbox.push_service import PushService
from sandbox.wire import Answer, Cut, json_answer

NOW = datetime(2030, 6, 10, 12, tzinfo=UTC)
TOKEN, USER = "a" * 30, "u" * 30
MESSAGE = Message("Upper Pines", ("044: Fri 3 Sep → Mon 6 Sep, 3 nights",), "Open now:", "Seen at 12:00")
RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded" / "pushover"


@pytest.fixture
def push() -> Iterator[PushService]:
    with PushService(TOKEN, [USER], now=lambda: NOW) as push:
        yield push


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, verify=False) as client:
        yield client


def attempt(client: httpx.Client, push: PushService, *, timeout: float = 5, message: Message = MESSAGE) -> Outcome:
    config = PushoverConfig(base_url=push.url, app_token=SecretStr(TOKEN), timeout_seconds=timeout)
    return Pushover(client, config).send(USER, message, NOW)


# --- what an answer means ---------------------------------------------------------------------------------

REJECTED = Outcome(Class.PERMANENT, Category.REJECTED)
RECIPIENT = Outcome(Class.PERMANENT, Category.INVALID_RECIPIENT)
TOKEN_REFUSED = Outcome(Class.PERMANENT, Category.INVALID_CREDENTIALS, parks=True)
PAYLOAD = Outcome(Class.PERMANENT, Category.MALFORMED_PAYLOAD)
UNPROVEN = Outcome(Class.AMBIGUOUS, Category.UNPROVEN_ACCEPTANCE)
LOST = Outcome(Class.AMBIGUOUS, Category.TRANSPORT_ERROR)
BROKEN = Outcome(Class.AMBIGUOUS, Category.SERVER_ERROR)


@pytest.mark.parametrize(
    ("scripted", "outcome"),
    [
        (Scripted.BAD_TOKEN, TOKEN_REFUSED),
        (Scripted.BAD_USER, RECIPIENT),
        (Scripted.NO_MESSAGE, PAYLOAD),
        (Scripted.MESSAGE_TOO_LONG, PAYLOAD),
        (Scripted.TITLE_TOO_LONG, PAYLOAD),
        (Scripted.URL_TOO_LONG, PAYLOAD),
        (Scripted.URL_TITLE_TOO_LONG, PAYLOAD),
        (
            Scripted.QUOTA,
            Outcome(Class.TRANSIENT, Category.QUOTA_EXHAUSTED, retry_at=datetime(2030, 7, 1, tzinfo=UTC), parks=True),
        ),
        (Scripted.BUSY, Outcome(Class.TRANSIENT, Category.RATE_LIMITED, retry_at=NOW + timedelta(seconds=30))),
        (Scripted.ERROR, BROKEN),
        (Scripted.UNAVAILABLE, Outcome(Class.AMBIGUOUS, Category.SERVER_ERROR, retry_at=NOW + timedelta(seconds=30))),
        (Scripted.REDIRECT, REJECTED),
        (Scripted.REQUEST_TIMEOUT, Outcome(Class.AMBIGUOUS, Category.TIMEOUT)),
        (Scripted.STATUS_ZERO, UNPROVEN),
        (Scripted.PAGE, UNPROVEN),
        (Scripted.EMPTY_OBJECT, UNPROVEN),
        (Scripted.TRUNCATED, UNPROVEN),
        (Scripted.NO_ID, Outcome(Class.ACCEPTED)),  # an acceptance without an id is one
        (Scripted.ACCEPT_THEN_DROP, LOST),
        (Scripted.ACCEPT_THEN_RESET, LOST),
        (Scripted.DROP, LOST),
        (Scripted.RESET, LOST),
        (Scripted.DROP_BEFORE_READING, LOST),
    ],
    ids=lambda value: value.name if isinstance(value, Scripted) else "",
)
def test_each_answer_has_its_outcome(
    push: PushService, client: httpx.Client, scripted: Scripted, outcome: Outcome
) -> None:
    push.script([scripted])
    assert attempt(client, push) == outcome
    assert len(push.attempts) == 1


@pytest.mark.parametrize("name", ["accept_html.json", "accept_plain.json"])
def test_recorded_acceptances_are_accepted(push: PushService, client: httpx.Client, name: str) -> None:
    if not RECORDED.is_dir():
        pytest.skip(f"no recordings at {RECORDED}")
    push.script([Answer(200, (RECORDED / name).read_bytes())])
    outcome = attempt(client, push)
    assert outcome.kind is Class.ACCEPTED
    assert re.fullmatch(r"[0-9a-f-]{36}", outcome.message_id or "")


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("reject_bad_token_400.json", TOKEN_REFUSED),
        ("reject_bad_user_400.json", RECIPIENT),
        ("reject_url_too_long_400.json", PAYLOAD),
    ],
)
def test_recorded_refusals_are_told_apart(push: PushService, client: httpx.Client, name: str, outcome: Outcome) -> None:
    if not RECORDED.is_dir():
        pytest.skip(f"no recordings at {RECORDED}")
    push.script([Answer(400, (RECORDED / name).read_bytes())])
    assert attempt(client, push) == outcome


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        (["application token is invalid"], TOKEN_REFUSED),
        (["user key is invalid"], RECIPIENT),
        (["device name is not valid for user"], RECIPIENT),
        (["message cannot be blank"], PAYLOAD),
        (["Url is too long (maximum is 512 characters)"], PAYLOAD),
        (["something else"], REJECTED),
        ([], REJECTED),
        (None, REJECTED),
        ([3, None], REJECTED),
    ],
)
def test_a_refusal_is_read_from_its_sentences_where_no_field_is_named(
    push: PushService, client: httpx.Client, errors: object, outcome: Outcome
) -> None:
    push.script([json_answer({"status": 0, "errors": errors}, 400)])
    assert attempt(client, push) == outcome


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_credential_parks_the_kind(push: PushService, client: httpx.Client, status: int) -> None:
    push.script([Answer(status, b'{"status":0,"user":"invalid"}')])
    assert attempt(client, push) == TOKEN_REFUSED


@pytest.mark.parametrize(
    "answer", [json_answer({"status": said, "request": "x"}) for said in ("1", True, 1.5, 2, None)]
)
def test_only_the_number_one_is_an_acceptance(push: PushService, client: httpx.Client, answer: Answer) -> None:
    push.script([answer])
    assert attempt(client, push) == UNPROVEN


@pytest.mark.parametrize("status", [201, 202, 206])
def test_only_a_plain_200_is_an_acceptance(push: PushService, client: httpx.Client, status: int) -> None:
    push.script([json_answer({"status": 1, "request": "x"}, status)])
    assert attempt(client, push) == UNPROVEN


@pytest.mark.parametrize("request_id", [7, None, "", "x" * 129, ["x"], "a\x00b"])
def test_an_id_that_is_none_does_not_undo_an_acceptance(
    push: PushService, client: httpx.Client, request_id: object
) -> None:
    push.script([json_answer({"status": 1, "request": request_id})])
    assert attempt(client, push) == Outcome(Class.ACCEPTED)


@pytest.mark.parametrize(
    ("headers", "outcome"),
    [
        ({}, Outcome(Class.TRANSIENT, Category.RATE_LIMITED)),
        ({"Retry-After": "soon"}, Outcome(Class.TRANSIENT, Category.RATE_LIMITED)),
        ({"X-Limit-App-Remaining": "0"}, Outcome(Class.TRANSIENT, Category.QUOTA_EXHAUSTED, parks=True)),
        (
            {"X-Limit-App-Remaining": "0", "X-Limit-App-Reset": "garbage"},
            Outcome(Class.TRANSIENT, Category.QUOTA_EXHAUSTED, parks=True),
        ),
        (
            {"X-Limit-App-Reset": str(int(NOW.timestamp()) + 60)},
            Outcome(Class.TRANSIENT, Category.QUOTA_EXHAUSTED, retry_at=NOW + timedelta(minutes=1), parks=True),
        ),
        (
            {"X-Limit-App-Reset": str(int(NOW.timestamp()) - 60)},
            Outcome(Class.TRANSIENT, Category.RATE_LIMITED),
        ),
        (  # the reset stands on every answer: with messages left this is about haste
            {"X-Limit-App-Remaining": "99", "X-Limit-App-Reset": str(int(NOW.timestamp()) + 60), "Retry-After": "5"},
            Outcome(Class.TRANSIENT, Category.RATE_LIMITED, retry_at=NOW + timedelta(seconds=5)),
        ),
    ],
)
def test_a_spent_quota_is_told_from_haste(
    push: PushService, client: httpx.Client, headers: dict[str, str], outcome: Outcome
) -> None:
    push.script([Answer(429, b"", headers)])
    assert attempt(client, push) == outcome


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(400, b'{"status":0}', cut=Cut.MIDWAY), REJECTED),
        (Answer(500, b"broken", cut=Cut.MIDWAY), BROKEN),
        (Answer(400, b"no gzip", {"Content-Encoding": "gzip"}), REJECTED),
        (Answer(200, b"no gzip", {"Content-Encoding": "gzip"}), LOST),
        (Answer(200, b" " * 100_000 + b'{"status":1}'), UNPROVEN),
    ],
    ids=["400 cut", "500 cut", "400 unreadable", "200 unreadable", "200 too large"],
)
def test_where_the_body_is_lost_the_status_speaks(
    push: PushService, client: httpx.Client, answer: Answer, outcome: Outcome
) -> None:
    push.script([answer])
    assert attempt(client, push) == outcome


@pytest.mark.parametrize("scripted", [Scripted.SLOW, Scripted.DRIP], ids=lambda scripted: scripted.name)
def test_an_answer_that_takes_too_long_is_ambiguous(
    push: PushService, client: httpx.Client, scripted: Scripted
) -> None:
    push.script([Reply(scripted, seconds=5 if scripted is Scripted.SLOW else 0.02)])
    began = time.monotonic()
    assert attempt(client, push, timeout=0.15) == Outcome(Class.AMBIGUOUS, Category.TIMEOUT)
    assert time.monotonic() - began < 2


def test_nobody_there_means_not_sent(client: httpx.Client) -> None:
    with PushService() as gone:
        pass
    assert attempt(client, gone) == Outcome(Class.TRANSIENT, Category.TRANSPORT_ERROR)


# --- recipients -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recipient", ["u" * 29, "u" * 31, "u" * 29 + "-", "u" * 29 + "é", "٣" * 30, "u" * 15 + " " + "u" * 14, "<b>"]
)
def test_a_key_is_thirty_letters_and_digits(client: httpx.Client, recipient: str) -> None:
    with pytest.raises(RecipientError, match="30 letters and digits"):
        Pushover(client, PushoverConfig()).check_recipient(recipient)


@pytest.mark.parametrize("token", [None, SecretStr("")])
def test_without_a_token_it_is_not_configured(client: httpx.Client, token: SecretStr | None) -> None:
    assert not Pushover(client, PushoverConfig(app_token=token)).configured


# --- what is said -----------------------------------------------------------------------------------------


def test_a_message_arrives_as_it_should_look(push: PushService, client: httpx.Client) -> None:
    message = Message(
        "Upper Pines & more",
        ("044 <A>: Fri 3 Sep → Mon 6 Sep, 3 nights", "no colon"),
        "2 sites are open",
        "Seen at 12:00",
        "https://example.org/?a=1&b=2",
        "Book <here>",
    )
    assert attempt(client, push, message=message).kind is Class.ACCEPTED
    [told] = push.messages
    assert told.html
    assert told.message.splitlines() == [
        "2 sites are open",
        "<b>044 &lt;A&gt;:</b> Fri 3 Sep → Mon 6 Sep, 3 nights",
        "no colon",
        "Seen at 12:00",
    ]
    # Only the message is read as HTML.
    assert told.title == "Upper Pines & more"
    assert (told.url, told.url_title) == ("https://example.org/?a=1&b=2", "Book <here>")


def test_a_bare_message_is_its_title(push: PushService, client: httpx.Client) -> None:
    for title in ("A & B", ""):
        assert attempt(client, push, message=Message(title)).kind is Class.ACCEPTED
    assert [told.message for told in push.messages] == ["A &amp; B", "Sitebell"]


def test_items_that_do_not_fit_are_counted() -> None:
    items = tuple(f"{number:03d}: Fri 3 Sep → Mon 6 Sep, 3 nights" for number in range(60))
    lines = texts(Message("Many", items, "60 sites are open", "Seen at 12:00"))["message"].splitlines()
    shown = [line for line in lines if line.startswith("<b>")]
    assert lines == ["60 sites are open", *shown, f"+{60 - len(shown)} more", "Seen at 12:00"]
    assert 15 < len(shown) < 60


def test_as_many_items_as_fit_are_shown() -> None:
    assert texts(Message("T", ("x" * 511, "y" * 512)))["message"] == "x" * 511 + "\n" + "y" * 512
    assert texts(Message("T", ("x" * 511, "y" * 513)))["message"] == "x" * 511 + "\n+1 more"


def test_a_single_item_beyond_all_limits_is_cut() -> None:
    body = texts(Message("T", ("&" * 3000, "b"), "Open", "Seen"))["message"]
    first, cut, more, note = body.splitlines()
    assert (first, more, note) == ("Open", "+1 more", "Seen")
    assert re.fullmatch(r"(&amp;)+…", cut)
    assert 1024 - 5 < len(body) <= 1024


def test_a_long_intro_leaves_room_for_items_and_note() -> None:
    lines = texts(Message("T", ("a: b", "c: d"), "x" * 3000, "y" * 3000))["message"].splitlines()
    assert lines[0].endswith("x…")
    assert lines[1:3] == ["<b>a:</b> b", "<b>c:</b> d"]
    assert lines[3] == "y" * 255 + "…"


def test_a_long_intro_alone_may_fill_the_message() -> None:
    assert texts(Message("T", intro="x" * 1022))["message"] == "x" * 1022


def test_titles_are_cut_and_long_links_left_out() -> None:
    fields = texts(Message("t" * 300, url="https://example.org/" + "x" * 492, url_title="u" * 101))
    assert fields["title"] == "t" * 249 + "…"
    assert len(fields["url"]) == 512
    assert fields["url_title"] == "u" * 99 + "…"
    assert set(texts(Message("t", url="https://example.org/" + "x" * 493, url_title="u"))) == {"message", "title"}


def test_an_accent_is_not_cut_off_its_letter() -> None:
    assert texts(Message("x" * 248 + "e\u0301" + "y" * 9))["title"] == "x" * 248 + "…"


@pytest.mark.parametrize("text", ["half \ud83d of it", "nul \x00"])
def test_what_cannot_be_written_is_replaced(push: PushService, client: httpx.Client, text: str) -> None:
    assert attempt(client, push, message=Message(text, (text,), text, text, text, text)).kind is Class.ACCEPTED


plain = st.text(st.characters() | st.sampled_from("&<>: \n"), max_size=700)


@given(items=st.lists(plain, max_size=12).map(tuple), intro=plain, note=plain, title=plain)
def test_a_message_is_well_formed_and_within_its_limit(
    items: tuple[str, ...], intro: str, note: str, title: str
) -> None:
    fields = texts(Message(title, items, intro, note))
    body = fields["message"]
    assert 0 < len(body) <= 1024
    assert len(fields.get("title", "")) <= 250
    bare = re.sub(r"<b>([^<>]*)</b>", r"\1", body)
    assert not re.search(r"[<>]", bare)
    assert not re.search(r"&(?!amp;|lt;|gt;)", bare)
    assert "&" not in html.unescape(bare).replace("&", "")
