"""Pushover: one push message to one person's devices."""

import re
import time
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, cast

import httpx
import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from chalicelib.channels.contract import ChannelInfo, Message, RecipientError
from chalicelib.channels.outcomes import (
    DeliveryErrorCategory,
    Outcome,
    OutcomeClass,
    status_outcome,
    transport_outcome,
)
from chalicelib.deadline import BodyTooLarge, DeadlinePassed, gather
from chalicelib.retry_after import moment_of

LARGEST_BODY = 64 * 1024
"""Bytes of an answer that are read. Real ones have about a hundred and fifty."""


class PushoverConfig(BaseModel):
    """`app_token` is the instance's own; `timeout_seconds` is for each phase and, once an answer has begun, for all."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    base_url: str = "https://api.pushover.net"
    app_token: SecretStr | None = None
    timeout_seconds: Annotated[float, Field(gt=0)] = 20


PUSHOVER = ChannelInfo(kind="pushover", name="Pushover", concurrency=2)


class Pushover:
    """The adapter; `info` may name a service that speaks the same API.

    At most two connections at once, which the vendor asks for.
    """

    def __init__(self, client: httpx.Client, config: PushoverConfig, info: ChannelInfo = PUSHOVER) -> None:
        self.info = info
        self._client = client
        self._config = config

    @property
    def configured(self) -> bool:
        """Whether there is an application token."""
        return self._config.app_token is not None and bool(self._config.app_token.get_secret_value())

    def check_recipient(self, recipient: str) -> str:
        """Give the user or group key without blanks around it; whether Pushover knows it is not asked.

        Raises RecipientError.
        """
        key = recipient.strip()
        if not re.fullmatch(r"[A-Za-z0-9]{30}", key):
            raise RecipientError("A Pushover user or group key is 30 letters and digits; this is something else.")
        return key

    def send(self, recipient: str, message: Message, now: datetime) -> Outcome:
        """Make one attempt and say what came of it."""
        if self._config.app_token is None or not self.configured:
            return _TOKEN_REFUSED
        form = {
            "token": self._config.app_token.get_secret_value(),
            "user": recipient,
            "html": "1",
            **texts(message),
        }
        until = time.monotonic() + self._config.timeout_seconds
        try:
            with self._client.stream(
                "POST",
                f"{self._config.base_url}/1/messages.json",
                data=form,
                timeout=self._config.timeout_seconds,
                follow_redirects=False,
            ) as response:
                return _judged(response, until, now)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            return transport_outcome(error)


# --- what an answer means ---------------------------------------------------------------------------------

_TOKEN_REFUSED = Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.INVALID_CREDENTIALS, parks=True)
_RECIPIENT_REFUSED = Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.INVALID_RECIPIENT)
_TEXT_REFUSED = Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.MALFORMED_PAYLOAD)

_REFUSALS: Mapping[str, Outcome] = {
    "token": _TOKEN_REFUSED,
    "user": _RECIPIENT_REFUSED,
    "device": _RECIPIENT_REFUSED,
    "message": _TEXT_REFUSED,
    "title": _TEXT_REFUSED,
    "url_title": _TEXT_REFUSED,
    "url": _TEXT_REFUSED,
}
"""What a field named in a refusal means; the first one found counts."""


def _judged(response: httpx.Response, until: float, now: datetime) -> Outcome:
    """Judge an answer. Where its body is lost the status speaks: a refusal stays one without its reason."""
    status = response.status_code
    by_status = status_outcome(status, response.headers, now)
    try:
        body = _object(gather(response.iter_bytes(), until=until, most=LARGEST_BODY))
    except BodyTooLarge:
        body = {}
    except (httpx.HTTPError, httpx.StreamError, OSError, DeadlinePassed) as error:
        lost = transport_outcome(TimeoutError() if isinstance(error, DeadlinePassed) else error)
        return lost if 200 <= status < 300 else _told_by_status(status, by_status, response.headers, now)
    said = body.get("status")
    if status == 200 and type(said) is int and said == 1:
        return Outcome(OutcomeClass.ACCEPTED, message_id=_message_id(body.get("request")))
    if by_status.category is DeliveryErrorCategory.REJECTED and 400 <= status < 500:
        return _refusal(body) or by_status
    return _told_by_status(status, by_status, response.headers, now)


def _told_by_status(status: int, outcome: Outcome, headers: httpx.Headers, now: datetime) -> Outcome:
    if status in {401, 403}:  # the credential is the application's token
        return _TOKEN_REFUSED
    return _quota_spent(headers, now) or outcome if status == 429 else outcome


def _quota_spent(headers: httpx.Headers, now: datetime) -> Outcome | None:
    """Tell the month's quota, which every application of the account shares, from too many requests at once."""
    remaining = headers.get("X-Limit-App-Remaining", "").strip()
    reset = moment_of(headers.get("X-Limit-App-Reset"), now)
    # Every answer names the reset: with messages left it is not what this one is about.
    if remaining == "0" or (not remaining and reset is not None):
        return Outcome(OutcomeClass.TRANSIENT, DeliveryErrorCategory.QUOTA_EXHAUSTED, retry_at=reset, parks=True)
    return None


def _refusal(body: Mapping[str, Any]) -> Outcome | None:
    """Read which field was refused: from its key beside `errors`, else from the sentences."""
    for field, outcome in _REFUSALS.items():
        if field in body:
            return outcome
    listed: object = body.get("errors")
    words = {word for line in _strings(listed) for word in re.findall(r"[a-z_]+", line.lower())}
    return next((outcome for field, outcome in _REFUSALS.items() if field in words), None)


def _strings(listed: object) -> list[str]:
    return [item for item in cast("list[object]", listed) if isinstance(item, str)] if isinstance(listed, list) else []


def _object(body: bytes) -> dict[str, Any]:
    try:
        content: object = pydantic_core.from_json(body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def _message_id(request: object) -> str | None:
    """Keep the id when it is one; an acceptance without an id is one."""
    return request if isinstance(request, str) and 0 < len(request) <= 128 and request.isprintable() else None


# --- what is said -----------------------------------------------------------------------------------------

MESSAGE, TITLE, URL, URL_TITLE = 1024, 250, 512, 100
"""Greatest lengths in characters, tags and entities counted."""


def texts(message: Message) -> dict[str, str]:
    """Give the form's texts within Pushover's limits. Only the message is read as HTML; titles are plain text there."""
    body = _body(message) or _shortened(message.title, MESSAGE, escaped=True) or "Sitebell"
    fields = {"message": body, "title": _shortened(message.title, TITLE)}
    # A link that is cut leads nowhere: it is left out whole.
    if message.url and len(message.url) <= URL:
        fields |= {"url": _encodable(message.url), "url_title": _shortened(message.url_title or "", URL_TITLE)}
    return {name: text for name, text in fields.items() if text}


def _body(message: Message) -> str:
    """Lay out intro, items and note; items that do not fit become "+N more"."""
    items = [_item(item) for item in message.items]
    note = _shortened(message.note, MESSAGE // 4, escaped=True)
    # Items get a quarter at least, where there are that many of them.
    reserved = min(len("\n".join(items)), MESSAGE // 4)
    intro = _shortened(message.intro, MESSAGE - reserved - len(note) - 2, escaped=True)
    for shown in range(min(len(items), MESSAGE // 2), 0, -1):
        body = _joined(intro, items[:shown], len(items) - shown, note)
        if len(body) <= MESSAGE:
            return body
    if not items:
        return _joined(intro, [], 0, note)
    # Not even the first item fits: as much of it as does.
    room = MESSAGE - len(_joined(intro, [""], len(items) - 1, note))
    return _joined(intro, [_shortened(message.items[0], room, escaped=True)], len(items) - 1, note)


def _joined(intro: str, items: Iterable[str], left_out: int, note: str) -> str:
    more = [f"+{left_out} more"] if left_out else []
    return "\n".join([*([intro] if intro else []), *items, *more, *([note] if note else [])])


def _item(item: str) -> str:
    """Escape a line, and set what stands before its first colon in bold: the name that an eye looks for."""
    item = _encodable(item)
    name, _, rest = item.partition(": ")
    return f"<b>{_escaped(name)}:</b> {_escaped(rest)}" if name and rest else _escaped(item)


def _shortened(text: str, room: int, *, escaped: bool = False) -> str:
    """Fit a text into so many characters with "…" at the end of what is cut, whole entities and accents only."""
    text = _encodable(text.strip())
    written = [_escaped(char) if escaped else char for char in text]
    if sum(map(len, written)) <= room:
        return "".join(written)
    length = 0
    for index, char in enumerate(written):
        length += len(char)
        if length > room - 1:
            # An accent that follows belongs to the character before it.
            while index and unicodedata.combining(text[index]):
                index -= 1  # noqa: PLW2901 - the loop ends here
            return "".join(written[:index]).rstrip() + "…" if room > 0 else ""
    return ""


def _escaped(text: str) -> str:
    """Escape for HTML between tags, where quotes are harmless: each entity counts."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _encodable(text: str) -> str:
    """Replace what UTF-8 cannot write (half a character), and take NUL out."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "")
