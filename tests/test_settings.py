"""Settings: what is wrong is named and not repeated."""

from collections.abc import Iterator

import pytest

from chalicelib import settings as module
from chalicelib.settings import SettingsError, settings

SECRET = "s3kret"
WRONG = {
    "DATABASE_URL": [f"mysql://u:{SECRET}@h/x", f"postgresql://h/{SECRET}", "sqlite://", "sqlite:///:memory:", SECRET],
    "PUSHOVER_URL": [f"http://{SECRET}.example", f"https://u:{SECRET}@h", f"https://h/{SECRET}", SECRET],
    "RECREATION_GOV_URL": [f"ftp://{SECRET}"],
    "RECREATION_GOV_PER_MINUTE": ["0", "-1", "1.5", SECRET],
    "CHECK_INTERVAL": ["-1", "inf", "nan", "1e300", SECRET],
    "RETRY_DELAY": ["-0.1", "inf", SECRET],
    "ATTEMPT_DEADLINE": ["0", "301", "nan", SECRET],
    "INVITE_ONLY": [SECRET],
    "CONTACT": [f"{SECRET}\nX-Injected: yes", f"{SECRET}\u00e9", "x" * 201],
    "DIRECT_LIMIT": ["-1", SECRET],
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """As in a process that has read no settings yet."""
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values], ids=repr
)
def test_a_wrong_value_is_refused_by_the_variables_name_alone(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"SITEBELL_{name}", value)
    with pytest.raises(SettingsError) as refused:
        settings()
    assert str(refused.value).startswith(f"SITEBELL_{name}: ")
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["https://a.example", "https://a.example:8443/", "http://127.0.0.1:9", "http://[::1]:9"]
)
def test_an_origin_is_https_or_on_this_machine(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SITEBELL_PUSHOVER_URL", url)
    assert settings().pushover_url == url.rstrip("/")


def test_keys_come_newest_first_and_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITEBELL_SECRET_KEYS", f"{SECRET}1, {SECRET}2")
    assert [key.get_secret_value() for key in settings().secret_keys] == [f"{SECRET}1", f"{SECRET}2"]
    assert SECRET not in repr(settings())


def test_the_cloud_needs_keys_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "detect")
    assert module.in_the_cloud()
    with pytest.raises(SettingsError, match="SITEBELL_SECRET_KEYS is required in the cloud"):
        settings()
