"""Sitebell's table of contents: the HTTP routes, and the three scheduled functions that are its heart.

detect writes what it found together with what is to be told; drain tells it; prune clears away what is over. What they
do stands in `chalicelib/detection/detect.py`, `chalicelib/outbox/drain.py` and `chalicelib/outbox/prune.py`.
"""

from chalice.app import Chalice, CloudWatchEvent, Rate

from chalicelib.api.health import routes as health
from chalicelib.panel.status import routes as panel
from chalicelib.runtime import logs
from chalicelib.runtime.invocation import invoke
from chalicelib.settings import in_the_cloud

if in_the_cloud():
    logs.set_up()

app = Chalice(app_name="sitebell", configure_logs=False)
app.register_blueprint(health)
app.register_blueprint(panel)


# The schedules stand here and not in a blueprint, whose scheduled handlers are loaded without the app.


@app.schedule(Rate(1, unit=Rate.MINUTES))
def detect(event: CloudWatchEvent) -> dict[str, object]:
    """Check every due campground once; write new openings together with the alerts they cause."""
    return invoke("detect", event)


@app.schedule(Rate(1, unit=Rate.MINUTES))
def drain(event: CloudWatchEvent) -> dict[str, object]:
    """Send the alerts that are due, each once and only while it is still true."""
    return invoke("drain", event)


@app.schedule(Rate(1, unit=Rate.HOURS))
def prune(event: CloudWatchEvent) -> dict[str, object]:
    """Delete what is over: alerts told a day ago, history of three months, targets nobody follows, ended sessions."""
    return invoke("prune", event)
