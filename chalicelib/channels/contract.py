"""What a channel is: it hands one message to an upstream service and says what became of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # outcomes knows httpx, which a function that sends nothing need not load
    from chalicelib.channels.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Message:
    """One message for one person, in plain text; the channel escapes and cuts it for its own limits.

    `items` are the lines that may be cut ("+N more"), `intro` and `note` stand before and after them.
    """

    title: str
    items: tuple[str, ...] = ()
    intro: str = ""
    note: str = ""
    url: str | None = None
    url_title: str | None = None


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """Facts of a kind of channel. `concurrency`: sends that may be under way at once over all processes (None: any)."""

    kind: str
    name: str
    concurrency: int | None


class RecipientError(ValueError):
    """A recipient cannot be one of this kind. The sentence is for people and does not repeat the recipient."""


class Channel(Protocol):
    """One kind of channel."""

    @property
    def info(self) -> ChannelInfo:
        """Who this is."""
        ...

    @property
    def configured(self) -> bool:
        """Whether the instance has what this kind needs of its own (an application token, say)."""
        ...

    def check_recipient(self, recipient: str) -> str:
        """The recipient in the form that is kept; touches no network. Raises RecipientError."""
        ...

    def send(self, recipient: str, message: Message, now: datetime) -> "Outcome":
        """Make one attempt and say what came of it; `now` turns an upstream's "later" into a moment.

        May raise DeliveryError, which carries an Outcome too.
        """
        ...
