import inspect
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from chalicelib.channels.outcomes import (
    STATUS,
    TRANSPORT,
    DeliveryError,
    DeliveryErrorCategory as Category,
    Outcome,
    OutcomeClass as Class,
    status_outcome,
    transport_outcome,
)

NOW = datetime(2030, 6, 10, 12, tzinfo=UTC)

TRANSPORT_CELLS = {
    httpx.ConnectError: (Class.TRANSIENT, Category.TRANSPORT_ERROR),
    httpx.ConnectTimeout: (Class.TRANSIENT, Category.TIMEOUT),
    httpx.PoolTimeout: (Class.TRANSIENT, Category.TIMEOUT),
    httpx.UnsupportedProtocol: (Class.TRANSIENT, Category.TRANSPORT_ERROR),
    httpx.LocalProtocolError: (Class.TRANSIENT, Category.TRANSPORT_ERROR),
    httpx.InvalidURL: (Class.TRANSIENT, Category.TRANSPORT_ERROR),
    httpx.ProxyError: (Class.TRANSIENT, Category.TRANSPORT_ERROR),
    httpx.WriteTimeout: (Class.AMBIGUOUS, Category.TIMEOUT),
    httpx.ReadTimeout: (Class.AMBIGUOUS, Category.TIMEOUT),
    httpx.WriteError: (Class.AMBIGUOUS, Category.TRANSPORT_ERROR),
    httpx.ReadError: (Class.AMBIGUOUS, Category.TRANSPORT_ERROR),
    httpx.RemoteProtocolError: (Class.AMBIGUOUS, Category.TRANSPORT_ERROR),
    httpx.CloseError: (Class.AMBIGUOUS, Category.TRANSPORT_ERROR),
    httpx.DecodingError: (Class.AMBIGUOUS, Category.TRANSPORT_ERROR),
    httpx.TooManyRedirects: (Class.AMBIGUOUS, Category.TRANSPORT_ERROR),
}


def made(kind: type[Exception]) -> Exception:
    """An exception of the class, whatever its constructor wants."""
    return kind.__new__(kind)


def httpx_exceptions() -> list[type[Exception]]:
    def family(kind: type[Exception]) -> Iterator[type[Exception]]:
        yield kind
        for child in kind.__subclasses__():
            yield from family(child)

    named = [thing for _, thing in inspect.getmembers(httpx, inspect.isclass) if issubclass(thing, Exception)]
    found = {kind for root in named for kind in family(root) if kind.__module__.startswith("httpx")}
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize(("kind", "cell"), TRANSPORT_CELLS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_each_transport_fault_has_its_class(kind: type[Exception], cell: tuple[Class, Category]) -> None:
    outcome = transport_outcome(made(kind))
    assert (outcome.kind, outcome.category) == cell
    assert outcome == Outcome(*cell)


@pytest.mark.parametrize("kind", httpx_exceptions(), ids=lambda kind: kind.__name__)
def test_every_exception_of_httpx_that_is_not_in_the_table_is_ambiguous(kind: type[Exception]) -> None:
    if kind not in TRANSPORT_CELLS:
        assert kind not in TRANSPORT
        assert transport_outcome(made(kind)).kind is Class.AMBIGUOUS


def test_the_walk_over_httpx_finds_its_tree() -> None:
    assert set(TRANSPORT_CELLS) == set(TRANSPORT)
    assert set(TRANSPORT_CELLS) | {httpx.HTTPError, httpx.TimeoutException} < set(httpx_exceptions())


@pytest.mark.parametrize(
    ("parent", "category"),
    [
        (httpx.ConnectError, Category.TRANSPORT_ERROR),
        (httpx.ConnectTimeout, Category.TIMEOUT),
        (httpx.TransportError, Category.TRANSPORT_ERROR),
        (TimeoutError, Category.TIMEOUT),
        (OSError, Category.TRANSPORT_ERROR),
        (Exception, Category.TRANSPORT_ERROR),
    ],
)
def test_a_class_that_nobody_knows_is_ambiguous_whatever_its_parent(
    parent: type[Exception], category: Category
) -> None:
    kind = type("NewlyInvented", (parent,), {})
    assert transport_outcome(made(kind)) == Outcome(Class.AMBIGUOUS, category)


STATUS_CELLS = (
    [(status, Class.AMBIGUOUS, Category.UNPROVEN_ACCEPTANCE) for status in range(200, 300)]
    + [(status, Class.PERMANENT, Category.REJECTED) for status in range(300, 400)]
    + [(status, Class.AMBIGUOUS, Category.SERVER_ERROR) for status in range(500, 600)]
    + [(status, Class.PERMANENT, Category.INVALID_CREDENTIALS) for status in (401, 403)]
    + [(status, Class.TRANSIENT, Category.RATE_LIMITED) for status in (425, 429)]
    + [(408, Class.AMBIGUOUS, Category.TIMEOUT)]
    + [(status, Class.PERMANENT, Category.REJECTED) for status in range(400, 500) if status not in STATUS]
    + [(status, Class.AMBIGUOUS, Category.TRANSPORT_ERROR) for status in (0, 100, 199, 600, 999)]
)


def test_each_status_has_its_class() -> None:
    for status, kind, category in STATUS_CELLS:
        assert status_outcome(status, httpx.Headers(), NOW) == Outcome(kind, category), status


def test_every_status_of_http_is_in_the_cells() -> None:
    assert {status for status, _, _ in STATUS_CELLS} >= set(range(200, 600))


@pytest.mark.parametrize(
    ("hint", "wait"),
    [
        ("30", timedelta(seconds=30)),
        ("0", timedelta(0)),
        ("Mon, 10 Jun 2030 13:00:00 GMT", timedelta(hours=1)),
        ("-1", None),
        ("whenever", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_a_hint_is_the_earliest_moment_of_another_attempt(status: int, hint: str, wait: timedelta | None) -> None:
    outcome = status_outcome(status, httpx.Headers({"retry-after": hint}), NOW)
    assert outcome.retry_at == (None if wait is None else NOW + wait)
    assert not outcome.parks


@pytest.mark.parametrize("status", [301, 400, 401, 404])
def test_what_is_permanent_has_no_next_attempt(status: int) -> None:
    assert status_outcome(status, httpx.Headers({"Retry-After": "30"}), NOW).retry_at is None


def test_a_raised_outcome_keeps_its_class() -> None:
    outcome = Outcome(Class.PERMANENT, Category.REJECTED)
    with pytest.raises(DeliveryError, match=r"^rejected$") as caught:
        raise DeliveryError(outcome)
    assert caught.value.outcome is outcome
