"""What use cases say no with: one tree, so that the command line and the API can answer each kind alike.

    Refused                 the message is a sentence for people and holds no secret
    ├── NotFound            it is not there, or not yours: nobody can tell which
    ├── Invalid             what was asked for makes no sense; `field` names the part
    ├── Conflict            it is there already; `existing_id` names it
    │   ├── EmailTaken
    │   └── DuplicateScan
    ├── QuotaReached        this person has as many of them as the instance allows
    ├── Unauthorized        who is calling is not known: no credential, or one that opens nothing
    ├── Forbidden           who is calling may not do this
    ├── TooManyTries        sign-in is tried too often; `retry_after` says when it may go on
    ├── KeyReused           an Idempotency-Key came before with another request
    ├── StillRunning        the first request with this Idempotency-Key has not ended
    └── Unavailable         this instance lacks something that it would need

Adapters have their own: `providers.contract.ProviderError`, `channels.outcomes.DeliveryError`.
"""

from datetime import timedelta
from uuid import UUID


class Refused(Exception):
    """A use case said no."""


class NotFound(Refused):
    def __init__(self, what: str, key: object) -> None:
        super().__init__(f"there is no {what} {key}")


class Invalid(Refused):
    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


class Conflict(Refused):
    def __init__(self, sentence: str, existing_id: UUID) -> None:
        super().__init__(sentence)
        self.existing_id = existing_id


class EmailTaken(Conflict):
    def __init__(self, existing_id: UUID) -> None:
        super().__init__(f"there is a user with this address already: {existing_id}", existing_id)


class DuplicateScan(Conflict):
    def __init__(self, existing_id: UUID) -> None:
        super().__init__(f"there is a scan that watches the same already: {existing_id}", existing_id)


class QuotaReached(Refused):
    """The person has as many as the instance allows."""


class Unauthorized(Refused):
    """Nobody knows who is calling."""


class Forbidden(Refused):
    """The caller is known, and may not."""


class TooManyTries(Refused):
    def __init__(self, retry_after: timedelta) -> None:
        super().__init__("too many attempts to sign in: wait a while")
        self.retry_after = retry_after


class KeyReused(Refused):
    def __init__(self) -> None:
        super().__init__("this Idempotency-Key came before, with another request")


class StillRunning(Refused):
    def __init__(self) -> None:
        super().__init__("the first request with this Idempotency-Key is still running")


class Unavailable(Refused):
    """This instance cannot do it as it is set up."""
