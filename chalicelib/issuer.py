"""An issuer of tokens (OpenID Connect): its keys are found by discovery, and its tokens are proved with them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

import httpx
import jwt

from chalicelib.errors import Unauthorized, Unavailable
from chalicelib.history import Clock

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric ones alone: with a shared secret whoever can check a token can make one."""

KEYS_KEPT = timedelta(minutes=10)
ASK_AGAIN = timedelta(seconds=30)  # an unknown key's name makes us ask once, and then not for a while
SKEW = timedelta(seconds=60)  # by which two clocks may differ
TIMEOUT = 5.0  # seconds for each phase
LARGEST = 1024 * 1024  # bytes of an answer


@dataclass(frozen=True, slots=True)
class Claims:
    """What a proved token says. `email` is None unless the issuer has verified it."""

    issuer: str
    subject: str
    email: str | None


class Issuer:
    """Proves tokens of one issuer for one audience. Its keys are kept ten minutes."""

    def __init__(self, client: httpx.Client, issuer: str, audience: str, clock: Clock) -> None:
        self._client = client
        self._issuer = issuer
        self._audience = audience
        self._clock = clock
        self._lock = Lock()
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._asked_at: datetime | None = None

    def identify(self, token: str) -> Claims:
        """What a token says, proved: signature, issuer, audience, expiry.

        Raises Unauthorized for a token that proves nothing, Unavailable where the issuer's keys cannot be had.
        """
        try:
            header = jwt.get_unverified_header(token)
            key = self._key(header.get("kid"))
            if header.get("alg") not in ALGORITHMS or key is None:
                raise Unauthorized("this token is not signed by a key of the issuer")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                audience=self._audience,
                # The times are checked below, by a clock that tests can move.
                options={
                    "require": ["exp", "iss", "aud", "sub"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidTokenError:
            raise Unauthorized("this token proves nothing here") from None
        if str(claims["iss"]).rstrip("/") != self._issuer:
            raise Unauthorized("this token is another issuer's")
        self._check_times(claims)
        email = claims.get("email") if claims.get("email_verified") is True else None
        return Claims(self._issuer, str(claims["sub"]), str(email) if email else None)

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = self._clock().timestamp()
        try:
            expires, begins = float(claims["exp"]), float(claims.get("nbf", 0))
        except (TypeError, ValueError):
            raise Unauthorized("this token proves nothing here") from None
        if not now - SKEW.total_seconds() < expires or begins > now + SKEW.total_seconds():
            raise Unauthorized("this token has expired, or is not valid yet")

    def _key(self, name: str | None) -> jwt.PyJWK | None:
        with self._lock:
            now = self._clock()
            age = now - self._asked_at if self._asked_at else KEYS_KEPT
            if age >= KEYS_KEPT or (name not in self._keys and age >= ASK_AGAIN):
                self._keys = self._fetch()
                self._asked_at = now
            if name is None and len(self._keys) == 1:
                return next(iter(self._keys.values()))
            return self._keys.get(name)

    def _fetch(self) -> dict[str | None, jwt.PyJWK]:
        try:
            found = self._get(f"{self._issuer}/.well-known/openid-configuration")
            if str(found["issuer"]).rstrip("/") != self._issuer:
                raise Unavailable("the issuer calls itself by another name")
            url = str(found["jwks_uri"])
            if not url.startswith(f"{self._issuer}/") and not url.startswith("https://"):
                raise Unavailable("the issuer's keys must come over https")
            keys = self._get(url)["keys"]
            return {key.get("kid"): jwt.PyJWK(key) for key in keys if _signs(key)}
        except (httpx.HTTPError, jwt.PyJWTError, ValueError, KeyError, TypeError, AttributeError):
            raise Unavailable("the issuer's keys cannot be had right now") from None

    def _get(self, url: str) -> Any:
        with self._client.stream("GET", url, timeout=TIMEOUT) as response:
            response.raise_for_status()
            body = b""
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > LARGEST:
                    raise ValueError("an answer that is too long")
        return httpx.Response(200, content=body).json()


def _signs(key: dict[str, Any]) -> bool:
    """Whether a key of the set is one for signatures that we know."""
    return key.get("kty") in {"RSA", "EC", "OKP"} and key.get("use", "sig") == "sig"
