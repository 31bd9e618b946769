"""Every setting, typed, read once and on demand from `SITEBELL_*` variables (and `.env`); nothing is read at import."""

import os
from functools import lru_cache
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "SITEBELL_"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class SettingsError(Exception):
    """A setting is missing or wrong. The message names the variable and holds no value."""


def _origin(url: str) -> str:
    """Accept `https://host[:port]`, or plain http where the host is this machine; gives it without a trailing slash."""
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise ValueError("must not hold a user or password")
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError("must be an origin, such as https://example.org, without a path")
    if not parts.hostname or parts.scheme not in {"http", "https"}:
        raise ValueError("must be an https origin, such as https://example.org")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise ValueError("must be https; plain http is for this machine alone")
    return url.rstrip("/")


Origin = Annotated[str, AfterValidator(_origin)]
NotNegative = Annotated[float, Field(ge=0, le=366 * 86400)]
"""Seconds (or hours): up to a year is more than anybody means, and no date overflows from it."""


class Settings(BaseSettings):
    """One field a variable: `database_url` is read from `SITEBELL_DATABASE_URL`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        hide_input_in_errors=True,
        frozen=True,
    )

    database_url: SecretStr = Field(
        SecretStr("sqlite:///.data/sitebell.db"),
        description="Where everything is kept: `sqlite:///file` or `postgresql://user:password@host/name`.",
    )
    secret_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (),
        description="Keys (comma-separated, newest first) that encrypt recipients. Make one with `keys new`. "
        "Without any, local commands keep one in `.data/secret_keys`; in the cloud it is required.",
    )
    auth_mode: Literal["none", "password", "oidc"] = Field(
        "none",
        description="Who is calling: `none` (whoever reaches this machine is its one owner), `password`, or `oidc` "
        "(a bearer token of an issuer). API tokens work in all three.",
    )
    open_to_network: bool = Field(
        False, description="With AUTH_MODE none, serve others than this machine too: whoever reaches it owns it."
    )
    public_url: Origin | None = Field(
        None, description="Origin under which people reach this instance, such as https://bell.example.org."
    )
    session_days: float = Field(30, gt=0, le=366, description="Days after which a browser must sign in again.")
    oidc_issuer: Origin | None = Field(None, description="With AUTH_MODE oidc: the issuer, as its tokens name it.")
    oidc_audience: str | None = Field(None, description="With AUTH_MODE oidc: the audience its tokens must be for.")
    max_scans: int = Field(50, ge=0, description="Scans that one person may have; 0 is no limit.")
    invite_only: bool = Field(False, description="Watch and tell only for people an administrator has invited.")
    contact: str = Field(
        "self-hosted",
        pattern=r"^[\x20-\x7e]{1,200}$",
        description="Who runs this instance (a URL or an address); told to booking sites in the User-Agent.",
    )

    recreation_gov_url: Origin = Field("https://www.recreation.gov", description="Origin of Recreation.gov.")
    recreation_gov_per_minute: int = Field(10, ge=1, description="Requests a minute to Recreation.gov.")
    ridb_url: Origin = Field("https://ridb.recreation.gov", description="Origin of the RIDB catalogue export.")
    pushover_url: Origin = Field("https://api.pushover.net", description="Origin of Pushover.")
    pushover_app_token: SecretStr | None = Field(None, description="Token of this instance's Pushover application.")

    sandbox_site_url: Origin | None = Field(
        None, description="Origin of a stand-in booking site, watched as provider `sandbox`; `make run` sets it."
    )
    sandbox_per_minute: int = Field(60, ge=1, description="Requests a minute to the stand-in booking site.")
    sandbox_push_url: Origin | None = Field(
        None, description="Origin of a stand-in push service, used by channels of kind `sandbox`; `make run` sets it."
    )
    sandbox_push_token: SecretStr | None = Field(None, description="Application token for the stand-in push service.")

    check_interval: NotNegative = Field(
        60, description="Seconds between two checks of one target; 0 checks at every run."
    )
    retry_delay: NotNegative = Field(
        120, description="Seconds before a delivery that failed for the moment is tried again."
    )
    attempt_deadline: float = Field(30, gt=0, le=300, description="Seconds that one delivery attempt may take in all.")
    fetch_deadline: float = Field(
        10, gt=0, le=120, description="Seconds that one request to a booking site may take in all."
    )
    results_max_age: NotNegative = Field(
        21600, description="Seconds after which what a check found is too old to be told; 21600 is six hours."
    )
    direct_limit: int = Field(
        0, ge=0, description="More matching campsites than this become one summary in direct mode; 0 is no limit."
    )
    catalog_refresh_hours: NotNegative = Field(
        0,
        description="Hours between two refreshes of the catalogue by the local runner; 0 leaves it to `catalog sync`.",
    )
    pause_sending: bool = Field(False, description="Keep noticing, but send nothing until this is off again.")

    def per_minute(self, provider: str) -> int:
        """The budget of a provider, in requests a minute."""
        return int(getattr(self, f"{provider}_per_minute"))

    @field_validator("secret_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: SecretStr) -> SecretStr:
        parts = urlsplit(value.get_secret_value())
        if parts.scheme not in {"sqlite", "postgresql", "postgresql+pg8000"}:
            raise ValueError("must begin with sqlite:/// or postgresql://")
        if parts.scheme == "sqlite" and parts.path in {"", "/", "/:memory:"}:
            raise ValueError("must name a file, which outlives a process: sqlite:///.data/sitebell.db")
        if parts.scheme != "sqlite" and not parts.username:
            raise ValueError("must name a user: postgresql://user:password@host/name")
        return value

    @model_validator(mode="after")
    def _oidc_is_whole(self) -> Self:
        if self.auth_mode == "oidc" and not (self.oidc_issuer and self.oidc_audience):
            raise ValueError(f"{PREFIX}OIDC_ISSUER and {PREFIX}OIDC_AUDIENCE are required where AUTH_MODE is oidc")
        return self

    @model_validator(mode="after")
    def _cloud_has_keys(self) -> Self:
        if in_the_cloud() and not self.secret_keys:
            raise ValueError(
                f"{PREFIX}SECRET_KEYS is required in the cloud: make one with `python -m chalicelib keys new`"
            )
        return self


def in_the_cloud() -> bool:
    """True inside a cloud function, where the disk forgets and a made-up key would be lost."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Read the settings once a process.

    Raises SettingsError, naming each variable that is wrong.
    """
    try:
        return Settings()  # pyright: ignore[reportCallIssue]  # every field has a default; pyright sees Field's first argument only
    except ValidationError as error:
        raise SettingsError("\n".join(_say(item["loc"], item["msg"]) for item in error.errors())) from None


def _say(loc: tuple[int | str, ...], message: str) -> str:
    message = message.removeprefix("Value error, ")
    return f"{PREFIX}{str(loc[0]).upper()}: {message}" if loc else message
