"""An issuer's tokens, against a real issuer on loopback: real keys, real HTTP."""

import json
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import RSAAlgorithm

from chalicelib.errors import Unauthorized, Unavailable
from chalicelib.issuer import Claims, Issuer
from tests.support.standins import HandClock

AUDIENCE = "sitebell"


class LoginService:
    """Signs tokens and publishes its keys."""

    def __init__(self) -> None:
        self.keys = {"one": rsa.generate_private_key(65537, 2048)}
        self.asked = 0
        self.broken = False
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked += 1
                body = json.dumps(service.answer(self.path)).encode()
                self.send_response(500 if service.broken else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> Any:
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        published = [
            {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"}
            for name, key in self.keys.items()
        ]
        return {"keys": [*published, {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}]}

    def token(self, clock: HandClock, *, key: Any = None, kid: str = "one", alg: str = "RS256", **claims: Any) -> str:
        told = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "42",
            "exp": int((clock.now + timedelta(minutes=5)).timestamp()),
            **claims,
        }
        told = {name: value for name, value in told.items() if value is not None}
        return jwt.encode(told, key or self.keys["one"], algorithm=alg, headers={"kid": kid})


@pytest.fixture
def service() -> Iterator[LoginService]:
    service = LoginService()
    yield service
    service.server.shutdown()
    service.server.server_close()


@pytest.fixture
def issuer(service: LoginService, clock: HandClock) -> Iterator[Issuer]:
    with httpx.Client(trust_env=False) as client:
        yield Issuer(client, service.url, AUDIENCE, clock)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def test_a_proved_token_says_who_it_is_and_only_a_verified_address(
    service: LoginService, issuer: Issuer, clock: HandClock
) -> None:
    assert issuer.identify(service.token(clock)) == Claims(service.url, "42", None)
    told = service.token(clock, email="ann@example.org", email_verified=True)
    assert issuer.identify(told).email == "ann@example.org"
    assert issuer.identify(service.token(clock, email="ann@example.org")).email is None
    assert issuer.identify(service.token(clock, email="ann@example.org", email_verified="true")).email is None


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"aud": None},
        {"sub": None},
        {"exp": None},
        {"exp": "soon"},
        {"exp": 0},
        {"nbf": 99999999999},
        {"kid": "unknown"},
        {"kid": "shared", "key": "secret-secret-secret-secret-secret", "alg": "HS256"},
    ],
)
def test_a_token_that_proves_nothing_is_refused(
    service: LoginService, issuer: Issuer, clock: HandClock, claims: dict[str, Any]
) -> None:
    with pytest.raises(Unauthorized):
        issuer.identify(service.token(clock, **claims))


def test_another_key_under_a_known_name_no_signature_and_no_token_are_refused(
    service: LoginService, issuer: Issuer, clock: HandClock
) -> None:
    other = service.token(clock, key=rsa.generate_private_key(65537, 2048))
    curve = service.token(clock, key=ec.generate_private_key(ec.SECP256R1()), alg="ES256")
    unsigned = jwt.encode({"sub": "42"}, "", algorithm="none", headers={"kid": "one"})
    for token in (other, curve, unsigned, "", "a.b.c", "é", "x" * 10000, service.token(clock)[:-4]):
        with pytest.raises(Unauthorized):
            issuer.identify(token)


def test_a_token_expires_by_the_clock_with_a_minute_for_clocks_that_differ(
    service: LoginService, issuer: Issuer, clock: HandClock
) -> None:
    token = service.token(clock)
    clock.advance(minutes=5, seconds=50)
    issuer.identify(token)
    clock.advance(seconds=10)
    with pytest.raises(Unauthorized):
        issuer.identify(token)


def test_keys_are_fetched_once_in_ten_minutes_and_again_for_a_new_name(
    service: LoginService, issuer: Issuer, clock: HandClock
) -> None:
    for _ in range(3):
        issuer.identify(service.token(clock))
    assert service.asked == 2
    service.keys["two"] = rsa.generate_private_key(65537, 2048)
    clock.advance(seconds=31)
    issuer.identify(service.token(clock, key=service.keys["two"], kid="two"))
    assert service.asked == 4
    for number in range(5):  # names made up do not make us ask for each
        with pytest.raises(Unauthorized):
            issuer.identify(service.token(clock, kid=f"made up {number}"))
    assert service.asked == 4
    clock.advance(minutes=10)
    issuer.identify(service.token(clock))
    assert service.asked == 6


def test_an_issuer_that_does_not_answer_is_a_fault_of_the_moment(
    service: LoginService, issuer: Issuer, clock: HandClock
) -> None:
    service.broken = True
    with pytest.raises(Unavailable):
        issuer.identify(service.token(clock))
    service.broken = False
    issuer.identify(service.token(clock))
