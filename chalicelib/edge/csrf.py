"""Proof that a form came from our own page: a token bound to a cookie of this browser, and to the session if any."""

import hmac
from hashlib import sha256
from secrets import token_urlsafe

from chalicelib.deps import Deps
from chalicelib.edge.callers import Caller
from chalicelib.edge.incoming import Incoming
from chalicelib.errors import Forbidden

BROWSER_COOKIE = "sitebell_browser"
FIELD = "csrf"
HEADER = "x-csrf-token"


def browser_of(request: Incoming) -> str | None:
    """This browser's own random value; None where it has none yet."""
    value = request.cookie(BROWSER_COOKIE)
    return value if value and 20 <= len(value) <= 64 else None


def new_browser() -> str:
    """A value for a browser that has none."""
    return token_urlsafe(24)


def token(deps: Deps, browser: str, caller: Caller | None) -> str:
    """What a form of this browser must bring back. Another session has another."""
    bound = f"{browser} {caller.session_id if caller else None}"
    return hmac.new(deps.vault.derive("csrf"), bound.encode(), sha256).hexdigest()


def check(deps: Deps, request: Incoming, caller: Caller | None, given: str | None) -> None:
    """Raise Forbidden unless a form, or a script's header, brought the right token back."""
    browser = browser_of(request)
    expected = token(deps, browser, caller) if browser else None
    if expected is None or given is None or not hmac.compare_digest(expected.encode(), given.encode()):
        raise Forbidden("this page has gone stale: go back, reload it, and try again")
