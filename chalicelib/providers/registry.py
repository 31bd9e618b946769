"""The booking sites that Sitebell knows, by id. A new one is one line here."""

from collections.abc import Mapping

from chalicelib.providers.recreation_gov import RecreationGov

PROVIDERS: Mapping[str, type[RecreationGov]] = {adapter.info.id: adapter for adapter in (RecreationGov,)}
"""Adapters by id: each is called with a client, its config and a clock, and carries its `info` without that."""

KNOWN = tuple(sorted(PROVIDERS))


class UnknownProvider(LookupError):
    """No such booking site. The sentence is for people."""


def check_provider(provider: str) -> str:
    """Give the id back.

    Raises UnknownProvider.
    """
    if provider not in PROVIDERS:
        raise UnknownProvider(f"There is no provider {provider[:40]!r}; known: {', '.join(KNOWN)}.")
    return provider
