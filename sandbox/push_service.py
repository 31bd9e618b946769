"""A stand-in Pushover: checks messages as the real one does, keeps what it accepted, and answers by script if told."""

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import parse_qs

from sandbox.push_rules import REFUSALS, Outcome, Problem, Reply, problem_with_keys, problem_with_texts
from sandbox.server import Clock, StandIn, utc_now
from sandbox.wire import Answer, Cut, Request, html_answer, json_answer

Path = Literal["/1/messages.json", "/1/users/validate.json"]
MESSAGES: Path = "/1/messages.json"
VALIDATE: Path = "/1/users/validate.json"

_LOST = {
    Outcome.ACCEPT_THEN_DROP: Cut.BEFORE_HEADERS,
    Outcome.ACCEPT_THEN_RESET: Cut.RESET,
    Outcome.DROP: Cut.BEFORE_HEADERS,
    Outcome.RESET: Cut.RESET,
    Outcome.DROP_BEFORE_READING: Cut.RESET,
}
_UNPROVING = {
    Outcome.STATUS_ZERO: json_answer({"status": 0, "errors": ["no reason given"], "request": str(uuid.uuid4())}),
    Outcome.PAGE: html_answer("Welcome", "This is not the answer that you wanted."),
    Outcome.EMPTY_OBJECT: json_answer({}),
    Outcome.NO_ID: json_answer({"status": 1}),
    Outcome.TRUNCATED: replace(json_answer({}), body=b'{"status":1,"request":"0b5e'),
}
"""Answers with 200 that a careful client does not take for acceptance."""
_ACCEPTING = {Outcome.ACCEPT, Outcome.SLOW, Outcome.DRIP, Outcome.ACCEPT_THEN_DROP, Outcome.ACCEPT_THEN_RESET}


@dataclass(frozen=True, slots=True)
class Message:
    """An accepted message; `request` is the id given for it, `at` is by the service's clock."""

    request: str
    token: str
    user: str
    message: str
    title: str
    url: str
    url_title: str
    html: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request for a message; `fields` are empty when it was dropped unread, `status` is None when none left."""

    at: datetime
    fields: Mapping[str, str]
    status: int | None
    accepted: bool


class PushService(StandIn):
    """A push service on loopback: `POST /1/messages.json` and `POST /1/users/validate.json`, form encoded."""

    def __init__(
        self,
        app_token: str | None = None,
        users: Iterable[str] | None = None,
        *,
        now: Clock = utc_now,
        quota: int = 10_000,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Start it; it knows `app_token` and `users` (None: any well-formed) and accepts `quota` messages in all."""
        self.messages: list[Message] = []
        """What was accepted, oldest first, whether or not the client was told."""
        self.attempts: list[Attempt] = []
        """Every request for a message, oldest first."""
        self.on_accept: Callable[[Message], object] | None = None
        """Called for each accepted message before the answer leaves."""
        self._app_token = app_token
        self._users = None if users is None else frozenset(users)
        self._quota = quota
        self._scripts: dict[str, deque[Reply | Answer]] = {MESSAGES: deque(), VALIDATE: deque()}
        self._lock = threading.Lock()
        super().__init__(now=now, host=host, port=port)

    def script(self, replies: Iterable[Outcome | Reply | Answer], *, on: Path = MESSAGES) -> None:
        """Append replies, used up in order by the next requests; after them valid messages are accepted again."""
        with self._lock:
            self._scripts[on].extend(Reply(reply) if isinstance(reply, Outcome) else reply for reply in replies)

    def drops_unread(self) -> bool:
        """Use up a DROP_BEFORE_READING that is next for messages; an unread request could be for any path."""
        with self._lock:
            script = self._scripts[MESSAGES]
            if script and isinstance(script[0], Reply) and script[0].outcome is Outcome.DROP_BEFORE_READING:
                script.popleft()
                self.attempts.append(Attempt(self.now(), {}, None, accepted=False))
                return True
        return False

    def respond(self, request: Request) -> Answer:
        """Give the next scripted answer for the path, or else the one that the request deserves."""
        if request.method != "POST" or request.path not in self._scripts:
            return json_answer({"status": 0, "errors": ["there is nothing at this address"]}, status=404)
        fields = {name: values[0] for name, values in parse_qs(request.body.decode(), keep_blank_values=True).items()}
        if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            fields = {}
        with self._lock:
            script = self._scripts[request.path]
            reply = script.popleft() if script else Reply(Outcome.ACCEPT)
            if request.path == VALIDATE:
                return reply if isinstance(reply, Answer) else self._scripted(reply, fields, self._validate)
            before = len(self.messages)
            answer = reply if isinstance(reply, Answer) else self._scripted(reply, fields, self._accept)
            accepted = self.messages[before:]
            left = answer.cut not in {Cut.BEFORE_HEADERS, Cut.RESET}
            self.attempts.append(Attempt(request.at, fields, answer.status if left else None, bool(accepted)))
        if self.on_accept is not None and accepted:
            self.on_accept(accepted[0])
        return answer

    def _scripted(
        self, reply: Reply, fields: Mapping[str, str], accept: Callable[[Mapping[str, str]], Answer]
    ) -> Answer:
        """Give the answer of an outcome; `accept` checks the fields and gives the good answer or a refusal."""
        outcome = reply.outcome
        if outcome in REFUSALS:
            return _refusal(REFUSALS[outcome])
        if outcome in _ACCEPTING:
            answer = accept(fields)
            return _disturbed(answer, reply) if answer.status == 200 else answer
        if outcome in _LOST:
            return Answer(cut=_LOST[outcome])
        if outcome in _UNPROVING:
            return _UNPROVING[outcome]
        return self._turned_away(reply)

    def _turned_away(self, reply: Reply) -> Answer:
        """Give the answers that are neither 200 nor about what the message says."""
        hint = {} if reply.retry_after is None else {"Retry-After": str(reply.retry_after)}
        hint_or_30 = {"Retry-After": "30"} | hint
        match reply.outcome:
            case Outcome.QUOTA:
                return self._over_quota(reply.reset, hint)
            case Outcome.BUSY:
                return _plain_refusal("too many requests at once", 429, hint_or_30)
            case Outcome.ERROR:
                return html_answer("Server error", "Something broke.", 500, hint)
            case Outcome.UNAVAILABLE:
                return html_answer("Unavailable", "Please come back later.", 503, hint_or_30)
            case Outcome.REDIRECT:
                return Answer(302, headers={"Location": f"{self.url}{MESSAGES}"})
            case Outcome.REQUEST_TIMEOUT:
                return html_answer("Request timeout", "Your request took too long.", 408)
            case _:
                raise ValueError(f"{reply.outcome} is not an answer to {MESSAGES}")

    def _accept(self, fields: Mapping[str, str]) -> Answer:
        problem = problem_with_keys(fields, self._app_token, self._users) or problem_with_texts(fields)
        if problem is not None:
            return _refusal(problem)
        if len(self.messages) >= self._quota:
            return self._over_quota(None, {})
        message = Message(
            request=str(uuid.uuid4()),
            token=fields["token"],
            user=fields["user"],
            message=fields["message"],
            title=fields.get("title", ""),
            url=fields.get("url", ""),
            url_title=fields.get("url_title", ""),
            html=fields.get("html") == "1",
            at=self.now(),
        )
        self.messages.append(message)
        left = self._quota - len(self.messages)
        return json_answer({"status": 1, "request": message.request}, headers=self._limits(left, None))

    def _validate(self, fields: Mapping[str, str]) -> Answer:
        problem = problem_with_keys(fields, self._app_token, self._users)
        if problem is not None:
            return _refusal(problem)
        return json_answer({"status": 1, "group": 0, "devices": ["phone"], "request": str(uuid.uuid4())})

    def _over_quota(self, reset: datetime | None, hint: Mapping[str, str]) -> Answer:
        return _plain_refusal("this month's messages are used up", 429, {**self._limits(0, reset), **hint})

    def _limits(self, remaining: int, reset: datetime | None) -> dict[str, str]:
        """Give the quota headers; the reset, in Unix seconds, is the first of next month unless told."""
        first = self.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        next_month = (first + timedelta(days=32)).replace(day=1)
        return {
            "X-Limit-App-Limit": str(self._quota),
            "X-Limit-App-Remaining": str(remaining),
            "X-Limit-App-Reset": str(int((reset or next_month).timestamp())),
        }


def _refusal(problem: Problem) -> Answer:
    return _plain_refusal(problem.sentence, 400, extra={problem.field: problem.word})


def _plain_refusal(
    sentence: str, status: int, headers: Mapping[str, str] | None = None, extra: Mapping[str, str] | None = None
) -> Answer:
    content = {"status": 0, "errors": [sentence], "request": str(uuid.uuid4()), **(extra or {})}
    return json_answer(content, status, headers)


def _disturbed(answer: Answer, reply: Reply) -> Answer:
    """Give the accepting answer late, in drips or not at all, as the outcome says."""
    match reply.outcome:
        case Outcome.SLOW:
            return replace(answer, delay=reply.seconds)
        case Outcome.DRIP:
            return replace(answer, drip=reply.seconds)
        case _:
            return replace(answer, cut=_LOST.get(reply.outcome, Cut.NOT))
