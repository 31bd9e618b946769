"""One GET to a booking site: within a total time, of a bounded size, and every way to fail put into a category."""

import time
from collections.abc import Mapping
from contextlib import closing

import httpx

from chalicelib.deadline import BodyTooLarge, DeadlinePassed, gather, within
from chalicelib.history import Clock, utc_now
from chalicelib.providers.contract import CheckError, ProviderError
from chalicelib.retry_after import retry_after

LARGEST_BODY = 16 * 1024 * 1024
"""Bytes. The largest recorded answer has one million."""

_CHALLENGES = (b"challenge", b"captcha", b"azwaf", b"awswaf", b"datadome", b"queue-it", b"request blocked")
"""What pages that want to see a person have in common, in lower case (those of Azure, AWS, Cloudflare and DataDome)."""


def get(
    client: httpx.Client,
    url: str,
    *,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    seconds: float,
    clock: Clock = utc_now,
) -> bytes:
    """Return the body of a 2xx answer that came whole within `seconds`; redirects are not followed.

    Raises ProviderError. What the body says is the caller's to judge: see `not_json`.
    """
    until = time.monotonic() + seconds
    try:
        request = client.build_request("GET", url, params=params, headers=headers, timeout=seconds)
        # httpx limits each read and not their sum, and a name's look-up not at all: hence a thread to walk away from.
        return within(seconds, lambda: _send(client, request, until, clock))
    except (DeadlinePassed, httpx.TimeoutException):
        raise ProviderError(CheckError.TIMEOUT) from None
    except BodyTooLarge:
        raise ProviderError(CheckError.MALFORMED) from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError):
        # Without the cause: an exception's text may hold an address, and ends in no log of ours.
        raise ProviderError(CheckError.TRANSPORT_ERROR) from None


def not_json(body: bytes) -> ProviderError:
    """Say what a body is that should have been JSON: a page that wants to see a person, or anything else."""
    start = body[:4096].lower()
    challenged = b"<" in start and any(mark in start for mark in _CHALLENGES)
    return ProviderError(CheckError.BLOCKED if challenged else CheckError.NOT_JSON, status=200)


def _send(client: httpx.Client, request: httpx.Request, until: float, clock: Clock) -> bytes:
    with closing(client.send(request, stream=True, follow_redirects=False)) as response:
        refusal = _refusal(response, clock)
        if refusal is not None:
            raise refusal
        return gather(response.iter_bytes(), until=until, most=LARGEST_BODY)


def _refusal(response: httpx.Response, clock: Clock) -> ProviderError | None:
    """Put a status into its category; None for a 2xx."""
    status = response.status_code
    hint = retry_after(response.headers.get("Retry-After"), clock())
    # AWS's firewall says so in a header: its challenge comes as an empty 202, its captcha as 405.
    if status == 403 or response.headers.get("x-amzn-waf-action") in {"challenge", "captcha"}:
        category = CheckError.BLOCKED
    elif status == 429:
        category = CheckError.RATE_LIMITED
    elif status == 404:
        category = CheckError.NOT_FOUND
    elif 200 <= status < 300:
        return None
    elif status < 500:  # a redirect too: the API has none, so the address is wrong
        category = CheckError.CLIENT_ERROR
    else:
        category = CheckError.SERVER_ERROR
    return ProviderError(category, status=status, retry_after=hint)
