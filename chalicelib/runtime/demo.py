"""The demo of `make run`: the local runner beside a stand-in booking site and push service, with a user and a scan."""

import logging
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from chalicelib import wiring
from chalicelib.accounts import channels, users
from chalicelib.db.audit import OPERATOR
from chalicelib.db.migrate import upgrade
from chalicelib.deps import Deps
from chalicelib.errors import DuplicateScan, NotFound
from chalicelib.runtime import logs
from chalicelib.runtime.local import running, wait_for_the_end
from chalicelib.scans import changes
from chalicelib.scans.request import ScanRequest
from chalicelib.settings import settings

if TYPE_CHECKING:
    from sandbox.demo import Demo
    from sandbox.push_service import Message

log = logging.getLogger(__name__)

CAMPER = "camper@sandbox.invalid"


def demo(port: int) -> None:
    """Bring the database to head, start the sandbox, have somebody watch it, and serve until Ctrl-C or SIGTERM.

    Raises MigrationRefused, SettingsError, and OSError for a port that is taken.
    """
    try:
        from sandbox.demo import start_demo
    except ModuleNotFoundError:
        sys.exit("the demo needs the sandbox, which is part of the source and not of the deployed package")
    logs.set_up()
    with start_demo() as sandbox:
        os.environ |= {
            "SITEBELL_SANDBOX_SITE_URL": sandbox.site_url,
            "SITEBELL_SANDBOX_PUSH_URL": sandbox.push_url,
            "SITEBELL_SANDBOX_PUSH_TOKEN": sandbox.app_token,
        }
        upgrade(settings().database_url.get_secret_value(), secret_keys=wiring.secret_keys(make=True))
        with wiring.wired() as deps:
            prepare(deps, sandbox)
        sandbox.push.on_accept = _say
        with running("127.0.0.1", port) as url:
            log.info("Sitebell is at %s (Ctrl-C stops it)", url)
            log.info("watching %s, at the stand-in booking site: a site opens there soon", sandbox.campground_name)
            wait_for_the_end()


def prepare(deps: Deps, sandbox: "Demo") -> None:
    """A user with a channel and a scan at the sandbox; those of an earlier demo are used again."""
    try:
        user = users.find(deps, CAMPER)
    except NotFound:
        user = users.add(deps, CAMPER, is_admin=True)
        channels.add(deps, user.id, "sandbox", sandbox.user_key, by=user.id)
    with suppress(DuplicateScan):
        request = ScanRequest("sandbox", sandbox.campground_id, sandbox.start, sandbox.end)
        changes.add(deps, user.id, request, by=OPERATOR)


def _say(message: "Message") -> None:
    text = message.message.replace("\n", " | ")
    log.info("push   %s: %s -> %s", message.title, text, message.url)
