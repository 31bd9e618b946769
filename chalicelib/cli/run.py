"""`run …`: a scheduled function, once and now."""

import click

from chalicelib.cli.output import emit, json_option, utc, wired

JOBS = ("detect", "drain", "prune")


@click.command(short_help="Run detect, drain or prune once.")
@click.argument("job", type=click.Choice(JOBS))
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=60, show_default=True, help="How long the run may take."
)
@json_option
@click.pass_context
def run(context: click.Context, job: str, seconds: float) -> None:
    """Run a scheduled function once and print its result; fails where its outcome is `error`.

    detect checks what is due, drain tells what was found, prune removes what is old. For a cron of your own: each is
    safe to run twice at once.
    """
    with wired() as deps:
        from chalicelib import wiring

        result = wiring.run(job, deps, seconds)
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in result.counts.items() if count)
    took = (result.finished_at - result.started_at).total_seconds()
    emit(
        result.to_json(),
        [
            f"{job}: {result.outcome} ({counts or 'nothing to do'}), at {utc(result.started_at)}, {took:.1f} s",
            *(
                f"  {attempt.kind} {attempt.target_id or ''}: {attempt.outcome} {attempt.error_category or ''}".rstrip()
                for attempt in result.history
            ),
        ],
    )
    if result.outcome == "error":
        context.exit(1)
