"""`keys …`: what recipients are encrypted with."""

import click

from chalicelib.cli.output import Failed, emit, json_option, wired


@click.group()
def keys() -> None:
    """Keys that encrypt channels' recipients: new, rotate."""


@keys.command()
@json_option
def new() -> None:
    """Print a fresh key: put it first in SITEBELL_SECRET_KEYS, then run `keys rotate`."""
    from chalicelib.db.vault import new_key

    key = new_key()
    emit({"key": key}, key)


@keys.command()
@json_option
def rotate() -> None:
    """Encrypt every recipient anew with the newest key; older keys are not needed any more then.

    Fails where some recipient opens with no key: it stays as it is, and its channel is named.
    """
    from chalicelib.accounts.channels import rotate_keys

    with wired() as deps:
        done = rotate_keys(deps)
    if done.unreadable:
        unreadable = [str(channel_id) for channel_id in done.unreadable]
        raise Failed(
            f"{done.rotated} rotated, but no key opens these channels: {', '.join(unreadable)}",
            rotated=done.rotated,
            unreadable=unreadable,
        )
    emit({"rotated": done.rotated, "unreadable": []}, f"{done.rotated} rotated; older keys are not needed any more")
