"""`/`: one plain page that says how the instance is."""

from html import escape

from chalice.app import Blueprint, Response

from chalicelib import wiring

routes = Blueprint(__name__)

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sitebell</title>
<style>
:root {{ color-scheme: light dark; font: 1.05rem/1.5 system-ui, sans-serif; }}
body {{ max-width: 40rem; margin: 0 auto; padding: 2rem 1.25rem; }}
h1 {{ margin: 0; font-size: 1.8rem; }}
p {{ margin: .25rem 0 1.5rem; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .5rem 1.5rem; margin: 0; }}
dt {{ opacity: .75; }}
dd {{ margin: 0; font-weight: 600; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<main>
<h1>Sitebell</h1>
<p>Watches booked-out campgrounds and tells the people who asked when a site opens up.</p>
<dl>
{rows}
</dl>
</main>
</body>
</html>
"""


@routes.route("/", methods=["GET"])
def status() -> Response:
    """The state of the instance, and nothing of its people."""
    state = wiring.readiness()
    rows = {
        "State": "ready" if state.problem is None else state.problem,
        "Last check": f"{state.last_discovery:%Y-%m-%d %H:%M:%S} UTC" if state.last_discovery else "none yet",
        "Alerts due": str(state.due),
        "Oldest due": f"{int(state.oldest.total_seconds())} seconds" if state.oldest else "nothing waits",
        "Version": wiring.VERSION,
    }
    lines = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows.items())
    headers: dict[str, str | list[str]] = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        "Cache-Control": "no-store",
    }
    return Response(PAGE.format(rows=lines), headers=headers)


@routes.route("/favicon.ico", methods=["GET"])
def favicon() -> Response:
    """Browsers ask for it; there is none."""
    return Response("", status_code=204)
