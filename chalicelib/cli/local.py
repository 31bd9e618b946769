"""`serve` and `demo`: Sitebell on this machine."""

import click


@click.command(short_help="Serve, and run the schedules.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port to listen at.")
def serve(host: str, port: int) -> None:
    """Serve API and panel, and run the scheduled functions at their rates."""
    from chalicelib.runtime import local

    local.serve(host=host, port=port)


@click.command(short_help="Serve with a stand-in booking site.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port to listen at.")
def demo(port: int) -> None:
    """Serve with a stand-in booking site and push service: an opening within a minute, without account or network."""
    from chalicelib.runtime import demo

    demo.demo(port=port)
