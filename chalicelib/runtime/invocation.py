"""One invocation of a scheduled function in a cloud: everything is made anew, and nothing outlives it."""

from typing import Any

from chalice.app import CloudWatchEvent

from chalicelib import wiring

RESERVE = 2.0  # seconds of an invocation that are left for closing connections and giving the result back


def invoke(job: str, event: CloudWatchEvent) -> dict[str, object]:
    """Run a job within what remains of the invocation, and give its result in JSON's types.

    Raises SettingsError and NotAtHead: an instance that is set up wrongly shall show in the cloud's own error count.
    """
    context: Any = event.context  # the Lambda context, which Chalice's annotation takes for a dict
    remaining = context.get_remaining_time_in_millis() / 1000 - RESERVE
    with wiring.wired() as deps:
        return wiring.run(job, deps, remaining).to_json()
