"""The demo of `make run`: the local runner beside a stand-in booking site and push service, with a user and a scan."""

import logging
import os
import re
import sys
from contextlib import suppress
from datetime import timedelta
from html import unescape
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
    """A user with a channel and two scans at the sandbox; those of an earlier demo are used again.

    One campground has an open night from the start and is told of at once, at the other a weekend opens later on.
    """
    try:
        user = users.find(deps, CAMPER)
    except NotFound:
        user = users.add(deps, CAMPER, is_admin=True)
    if not channels.of_user(deps, user.id):
        channels.add(deps, user.id, "sandbox", sandbox.user_key, by=user.id)
    for campground_id, days in ((sandbox.open_campground_id, 7), (sandbox.campground_id, 3)):
        request = ScanRequest("sandbox", campground_id, sandbox.start, sandbox.start + timedelta(days))
        with suppress(DuplicateScan):
            changes.add(deps, user.id, request, by=OPERATOR)


def _say(message: "Message") -> None:
    text = unescape(re.sub(r"<[^>]+>", "", message.message)).replace("\n", " | ")
    log.info("push   %s: %s -> %s", message.title, text, message.url)
