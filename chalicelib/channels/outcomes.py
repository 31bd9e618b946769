"""What counts as what: the classes of a delivery's outcome, and the tables that decide them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import httpx

from chalicelib.retry_after import retry_after


class OutcomeClass(StrEnum):
    """How sure an attempt's end is. What is done about a class is the policy of the kind of delivery."""

    ACCEPTED = "accepted"  # the upstream said so in its body
    TRANSIENT = "transient"  # surely not accepted, or the vendor says that repeating is safe
    PERMANENT = "permanent"  # repeating the same thing cannot help
    AMBIGUOUS = "ambiguous"  # it may have been accepted: nobody can say


class DeliveryErrorCategory(StrEnum):
    """Why an attempt did not end in acceptance: the part of the fixed list that channels give."""

    TIMEOUT = "timeout"
    TRANSPORT_ERROR = "transport_error"
    RATE_LIMITED = "rate_limited"
    QUOTA_EXHAUSTED = "quota_exhausted"
    SERVER_ERROR = "server_error"
    UNPROVEN_ACCEPTANCE = "unproven_acceptance"
    REJECTED = "rejected"
    INVALID_RECIPIENT = "invalid_recipient"
    INVALID_CREDENTIALS = "invalid_credentials"
    MALFORMED_PAYLOAD = "malformed_payload"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one attempt.

    `message_id` is the upstream's, on acceptance alone (None where it gave none). `retry_at` is the earliest moment the
    upstream allows another attempt. `parks` says that the whole kind is out (refused application token, spent quota),
    not this message alone.
    """

    kind: OutcomeClass
    category: DeliveryErrorCategory | None = None
    message_id: str | None = None
    retry_at: datetime | None = None
    parks: bool = False


class DeliveryError(Exception):
    """A channel's way to raise what it could also return: it keeps its class."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.category or outcome.kind)
        self.outcome = outcome


# --- the transport table ----------------------------------------------------------------------------------

_NOT_SENT_IN_TIME = Outcome(OutcomeClass.TRANSIENT, DeliveryErrorCategory.TIMEOUT)
_NOT_SENT = Outcome(OutcomeClass.TRANSIENT, DeliveryErrorCategory.TRANSPORT_ERROR)
_NO_ANSWER_IN_TIME = Outcome(OutcomeClass.AMBIGUOUS, DeliveryErrorCategory.TIMEOUT)
_LOST = Outcome(OutcomeClass.AMBIGUOUS, DeliveryErrorCategory.TRANSPORT_ERROR)

TRANSPORT: Mapping[type[Exception], Outcome] = {
    # No byte of the request left this machine.
    httpx.ConnectTimeout: _NOT_SENT_IN_TIME,
    httpx.PoolTimeout: _NOT_SENT_IN_TIME,
    httpx.ConnectError: _NOT_SENT,
    httpx.ProxyError: _NOT_SENT,
    httpx.UnsupportedProtocol: _NOT_SENT,
    httpx.LocalProtocolError: _NOT_SENT,
    httpx.InvalidURL: _NOT_SENT,
    # Something left, or may have. Measured on httpx 0.28.1: the same RemoteProtocolError comes when the server has read
    # nothing and when it has read everything.
    httpx.WriteTimeout: _NO_ANSWER_IN_TIME,
    httpx.ReadTimeout: _NO_ANSWER_IN_TIME,
    httpx.WriteError: _LOST,
    httpx.ReadError: _LOST,
    httpx.CloseError: _LOST,
    httpx.RemoteProtocolError: _LOST,
    httpx.DecodingError: _LOST,
    httpx.TooManyRedirects: _LOST,
}


def transport_outcome(error: Exception) -> Outcome:
    """Say what an exception on the way means. A class that is not in the table, a subclass too, is ambiguous."""
    known = TRANSPORT.get(type(error))
    if known is not None:
        return known
    return _NO_ANSWER_IN_TIME if isinstance(error, httpx.TimeoutException | TimeoutError) else _LOST


# --- the status table -------------------------------------------------------------------------------------

STATUS: Mapping[int, Outcome] = {
    401: Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.INVALID_CREDENTIALS),
    403: Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.INVALID_CREDENTIALS),
    408: _NO_ANSWER_IN_TIME,
    425: Outcome(OutcomeClass.TRANSIENT, DeliveryErrorCategory.RATE_LIMITED),
    429: Outcome(OutcomeClass.TRANSIENT, DeliveryErrorCategory.RATE_LIMITED),
}
"""Codes with a meaning of their own."""

STATUS_FAMILY: Mapping[int, Outcome] = {
    2: Outcome(OutcomeClass.AMBIGUOUS, DeliveryErrorCategory.UNPROVEN_ACCEPTANCE),  # the proof is in the body
    3: Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.REJECTED),  # no redirect is followed
    4: Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.REJECTED),
    5: Outcome(OutcomeClass.AMBIGUOUS, DeliveryErrorCategory.SERVER_ERROR),  # unless a channel's vendor promises more
}
"""All other codes, by their first digit; one outside of these is ambiguous."""


def status_outcome(status: int, headers: Mapping[str, str], now: datetime) -> Outcome:
    """Say what a status code means where the body says nothing better; `headers` (httpx's) may tell when to return."""
    outcome = STATUS.get(status) or STATUS_FAMILY.get(status // 100, _LOST)
    wait = retry_after(headers.get("Retry-After"), now)
    if wait is None or outcome.kind is OutcomeClass.PERMANENT:
        return outcome
    return Outcome(outcome.kind, outcome.category, retry_at=now + wait)
