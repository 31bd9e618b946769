"""The ways to reach people that Sitebell knows, by kind. A new one is one line here."""

from collections.abc import Mapping

from chalicelib.channels.pushover import Pushover

CHANNELS: Mapping[str, type[Pushover]] = {adapter.info.kind: adapter for adapter in (Pushover,)}
"""Adapters by kind: each is called with a client and its config, and carries its `info` without that."""

KNOWN = tuple(sorted(CHANNELS))


class UnknownChannel(LookupError):
    """No such kind of channel. The sentence is for people."""


def check_kind(kind: str) -> str:
    """Give the kind back.

    Raises UnknownChannel.
    """
    if kind not in CHANNELS:
        raise UnknownChannel(f"There is no kind of channel {kind[:40]!r}; known: {', '.join(KNOWN)}.")
    return kind
