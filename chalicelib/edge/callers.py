"""Who is calling: an API token, a session's cookie, an issuer's token, or whoever reaches an instance of one owner."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit
from uuid import UUID

from chalicelib.accounts import sessions, tokens, users
from chalicelib.accounts.users import User
from chalicelib.db.audit import Administrator, Asker
from chalicelib.deps import Deps
from chalicelib.edge.incoming import Incoming, origin_host
from chalicelib.errors import Forbidden, NotFound, Unauthorized
from chalicelib.settings import LOOPBACK

SESSION_COOKIE = "sitebell_session"


class Rights(StrEnum):
    """What a credential allows; a token's kinds bear the same names."""

    READ_WRITE = "read_write"
    READ_ONLY = "read_only"
    SERVICE = "service"


class Who(StrEnum):
    """Who may call a route."""

    ANYONE = "anyone"
    SIGNED_IN = "signed_in"  # also somebody who still waits for an invitation
    PERSON = "person"
    ADMINISTRATOR = "administrator"


@dataclass(frozen=True, slots=True)
class Caller:
    """A known caller. `ambient`: a browser sends the credential by itself, so that other sites could make it."""

    user: User
    rights: Rights
    ambient: bool
    session_id: UUID | None = None

    @property
    def asker(self) -> Asker:
        """Whose things it may see and change by their ids."""
        return Administrator(self.user.id) if self.user.is_admin else self.user.id


def identify(deps: Deps, request: Incoming) -> Caller | None:
    """Who is calling, None where nobody says. A bearer token wins over everything else.

    Raises Unauthorized for a bearer token that opens nothing, Forbidden where AUTH_MODE none does not serve this host.
    """
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return _by_bearer(deps, secret.strip())
    if deps.settings.auth_mode == "password":
        return _by_session(deps, request)
    if deps.settings.auth_mode == "none":
        check_host(deps, request)
        return Caller(users.the_owner(deps), Rights.READ_WRITE, ambient=True)
    return None


def admit(deps: Deps, caller: Caller | None, who: Who, request: Incoming) -> None:
    """Raise Unauthorized, Forbidden, or NotFound for an administrator's route, unless the caller may call it."""
    if who is Who.ANYONE:
        return
    if caller is None:
        raise Unauthorized("sign in, or send an API token: Authorization: Bearer …")
    if caller.rights is Rights.SERVICE:
        raise Forbidden("a service token opens service routes alone")
    if who is Who.ADMINISTRATOR and not caller.user.is_admin:
        raise NotFound("page", request.path)
    if caller.rights is Rights.READ_ONLY and not request.is_safe:
        raise Forbidden("this token may only read")
    if who is Who.PERSON and waits_for_invitation(deps, caller.user):
        raise Forbidden("your request for access waits for an administrator's invitation")


def waits_for_invitation(deps: Deps, user: User) -> bool:
    """Whether a person may look at nothing but their own account yet."""
    return deps.settings.invite_only and user.invited_at is None and not user.is_admin


def check_same_origin(deps: Deps, request: Incoming) -> None:
    """Raise Forbidden where another site made the browser send this. What is no browser sends no such header."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise Forbidden("this came from another site")
    origin = request.headers.get("origin")
    own = {request.host}
    if deps.settings.public_url:
        own.add(origin_host(deps.settings.public_url))
    if origin is not None and origin_host(origin) not in own:
        raise Forbidden("this came from another site")


def check_host(deps: Deps, request: Incoming) -> None:
    """Where nobody signs in, serve this machine alone, under names that no other site can take (DNS rebinding).

    With OPEN_TO_NETWORK others are served too, under an address in numbers or PUBLIC_URL. Raises Forbidden.
    """
    name = urlsplit(f"//{request.host}").hostname or ""
    public = deps.settings.public_url
    if deps.settings.open_to_network:
        served = _is_number(name) or name in LOOPBACK or (public is not None and request.host == origin_host(public))
    else:
        served = name in LOOPBACK and is_loopback(request.address)
    if not served:
        raise Forbidden(
            "this instance has one owner and serves its own machine alone: set SITEBELL_AUTH_MODE, or "
            "SITEBELL_OPEN_TO_NETWORK with SITEBELL_PUBLIC_URL"
        )


def is_loopback(address: str) -> bool:
    """Whether an address in numbers is this machine's own."""
    return _is_number(address) and ip_address(address).is_loopback


def _is_number(address: str) -> bool:
    try:
        ip_address(address)
    except ValueError:
        return False
    return True


def _by_bearer(deps: Deps, secret: str) -> Caller:
    if secret.startswith("sb_"):
        if found := tokens.use(deps, secret):
            user, token = found
            return Caller(user, Rights(token.kind), ambient=False)
    elif deps.settings.auth_mode == "oidc" and deps.issuer is not None:
        claims = deps.issuer.identify(secret)
        # A proxy before the app may add the header by itself, so that it counts as sent by the browser.
        return Caller(
            users.by_subject(deps, claims.issuer, claims.subject, claims.email), Rights.READ_WRITE, ambient=True
        )
    raise Unauthorized("this token opens nothing: it may have been revoked")


def _by_session(deps: Deps, request: Incoming) -> Caller | None:
    cookie = request.cookie(SESSION_COOKIE)
    found = sessions.find(deps, cookie) if cookie else None
    if found is None:
        return None
    user, session_id = found
    return Caller(user, Rights.READ_WRITE, ambient=True, session_id=session_id)
