"""Encryption at rest for what people trust us with: channels' recipients."""

import hmac
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class Unreadable(Exception):
    """None of the keys opens this. The message holds nothing of what was stored."""


class Vault:
    """Encrypts with the newest key and opens with any. Takes Fernet keys, newest first.

    Raises ValueError, without the key, for one that is none.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
            self._newest = keys[0].encode()
        except ValueError:
            sentence = "SITEBELL_SECRET_KEYS: a key is not 32 url-safe base64 bytes; make one with `keys new`"
            raise ValueError(sentence) from None

    def encrypt(self, text: str) -> str:
        """Plain text in, a token for the database out."""
        return self._fernet.encrypt(text.encode()).decode()

    def decrypt(self, token: str) -> str:
        """The way back. Raises Unreadable."""
        try:
            return self._fernet.decrypt(token.encode()).decode()
        except InvalidToken:
            raise Unreadable from None

    def rotate(self, token: str) -> str:
        """The same content under the newest key. Raises Unreadable."""
        try:
            return self._fernet.rotate(token.encode()).decode()
        except InvalidToken:
            raise Unreadable from None

    def derive(self, purpose: str) -> bytes:
        """A key for one purpose, from the newest one: it says nothing of that, and changes with it."""
        return hmac.digest(self._newest, f"sitebell {purpose}".encode(), "sha256")


def new_key() -> str:
    """A fresh key, for SITEBELL_SECRET_KEYS."""
    return Fernet.generate_key().decode()
