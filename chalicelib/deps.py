"""What the use cases are given: one bundle, built by wiring for production and by tests with stand-ins."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import sleep
from typing import TYPE_CHECKING

from chalicelib.channels.contract import Channel
from chalicelib.db.engine import Database
from chalicelib.db.vault import Vault
from chalicelib.history import Clock, RuntimeState, utc_now
from chalicelib.providers.contract import Provider
from chalicelib.settings import Settings

if TYPE_CHECKING:
    from chalicelib.issuer import Issuer


@dataclass(frozen=True, slots=True)
class Deps:
    """Everything a use case may reach. Adapters are looked up by their name; an unknown name is a KeyError.

    `wake` is called after detect has committed intents, so that drain need not wait for its schedule. `pause` waits so
    many seconds; it is used between tries to write to a busy database, and nowhere else. `issuer` is there with
    AUTH_MODE oidc alone.
    """

    settings: Settings
    database: Database
    vault: Vault
    providers: Mapping[str, Provider]
    channels: Mapping[str, Channel]
    clock: Clock = utc_now
    runtime: RuntimeState = field(default_factory=RuntimeState)
    wake: Callable[[], None] | None = None
    pause: Callable[[float], None] = sleep
    issuer: "Issuer | None" = None
