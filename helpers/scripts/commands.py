"""`course run`: run a script on real ranks, and report the result."""

from __future__ import annotations

import os
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from helpers.course.command_parts import TO_LEARN, CommandError, CommandWithCode, as_json_option
from helpers.views.plain import plural

if TYPE_CHECKING:
    from helpers.ranks.run import Run
    from helpers.scripts.run_script import ScriptJob
    from helpers.scripts.step_findings import Finding

_NOT_STARTED = 4
"""The exit code if no rank was started. (2 means a deadlock.)"""


class _NotStarted(CommandError):
    """The script could not be started."""

    exit_code = _NOT_STARTED


@click.command(
    cls=CommandWithCode,
    usage_code=_NOT_STARTED,
    title=TO_LEARN,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.option(
    "--ranks", default=2, show_default=True, help="Ranks to start, on all nodes together."
)
@click.option("--nnodes", default=1, show_default=True, help="Number of nodes to simulate.")
@click.option("--timeout", type=float, help="Time limit in seconds (default: no limit).")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page for stepping through the run.",
)
@click.option(
    "--check-steps",
    type=click.IntRange(1),
    help="Stop after this many optimizer steps, and report faults that raise no error.",
)
@click.option("-m", "as_module", is_flag=True, help="Run a module, as `python -m` does.")
@as_json_option
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(script: str, arguments: tuple[str, ...], **options: Any) -> None:
    """Run your own script on real ranks, as torchrun would.

    If ranks hang, fail or make different calls, it reports the rank, the call and the line.

    \b
    Exit codes: 0  all ranks succeeded    3  the time limit was reached
                1  a rank failed          4  the script could not be started
                2  a deadlock             5  --check-steps found a fault
    """
    from helpers.ranks.failures import LaunchError

    try:
        code = _run(script, arguments, _Settings(**options))
    except LaunchError as error:
        words = str(error).replace("world_size must", "--ranks must")
        raise _NotStarted(re.sub("^timeout must", "--timeout must", words)) from None
    sys.exit(code)


@dataclass(frozen=True)
class _Settings:
    """The options of the command."""

    ranks: int
    nnodes: int
    timeout: float | None
    report: Path | None
    check_steps: int | None
    as_module: bool
    as_json: bool


def _run(script: str, arguments: tuple[str, ...], settings: _Settings) -> int:
    from helpers.scripts.read_script import read_module, read_script
    from helpers.scripts.run_script import ScriptJob, check_job, run_job
    from helpers.scripts.stopping import StoppableDisplay, catch_signals
    from helpers.scripts.terminal import RankOutput

    job = ScriptJob(
        (read_module if settings.as_module else read_script)(script),
        settings.ranks,
        arguments,
        settings.nnodes,
        timeout=float("inf") if settings.timeout is None else settings.timeout,
        check_steps=settings.check_steps or 0,
    )
    report = settings.report
    if report is not None:
        _check_writable(report)
    output = RankOutput(sys.stderr if settings.as_json else sys.stdout)
    findings: list[Finding] = []
    step_count = 0
    with catch_signals() as received:
        display = StoppableDisplay(output, received)
        ways: dict[str, Any] = {"show_output": output.add, "record_values": report is not None}
        try:
            if job.check_steps:
                result, findings, step_count = check_job(job, display, **ways)
            else:
                result = run_job(job, display, **ways)
            output.finish()
        except KeyboardInterrupt:
            if output.is_closed:
                return 128 + signal.SIGPIPE
            output.finish()
            number = received.number or signal.SIGINT
            _say_stopped(number, display.waits, settings)
            return 128 + number
    if job.check_steps and result.ok and not findings:
        click.echo(_describe_checked_steps(step_count, job.check_steps), err=True)
    return _tell(job, result, findings, settings)


def _check_writable(report: Path) -> None:
    """Raise _NotStarted if the report could not be written after the run, which may take hours."""
    if not report.absolute().parent.is_dir():
        raise _NotStarted(f"there is no folder {report.parent} for the report.")
    is_new = not report.exists()
    try:
        with report.open("ab"):
            pass
        if is_new:
            report.unlink()
    except OSError as error:
        raise _NotStarted(f"the report {report} cannot be written: {error.strerror}.") from None


def _describe_checked_steps(step_count: int, limit: int) -> str:
    """Return the result of a check without findings. step_count: the number of steps taken by the script."""
    if not step_count:
        return "No silent fault found, but no optimizer took a step."
    whole = "" if step_count >= limit else ", the whole script"
    return f"No silent fault found in {plural(step_count, 'step')}{whole}."


def _say_stopped(number: int, waits: list[str], settings: _Settings) -> None:
    """Print that the run was ended by a signal, and the ranks' positions."""
    lines = [f"Stopped by {signal.Signals(number).name}; all ranks were ended."]
    click.echo("\n".join([*lines, "They were here:", *waits]), err=True)
    if settings.as_json:
        from helpers.course.as_json import write

        write({"exit_code": 128 + number, "error": lines[0]})


def _tell(job: ScriptJob, result: Run, findings: list[Finding], settings: _Settings) -> int:
    """Print the end of a run in each requested form. Return the exit code."""
    from helpers.course.as_json import write
    from helpers.scripts.ending import ending_data, exit_code, github_commands

    if settings.report is not None:
        from helpers.scripts.report import write_report

        write_report(settings.report, job, result, findings)
    for note in (*result.notes, *result.thread_errors):
        click.echo(f"Note: {note}", err=True)
    if result.failure is not None:
        click.echo(f"\n{type(result.failure).__name__}: {result.failure}", err=True)
    for finding in findings:
        click.echo(f"\nSilent fault: {finding}", err=True)
    if settings.report is not None:
        click.echo(f"Report: {settings.report}", err=True)
    if "GITHUB_ACTIONS" in os.environ:
        for line in github_commands(result, findings, job.script.path):
            click.echo(line, err=settings.as_json)
    code = exit_code(result, findings)
    if settings.as_json:
        ending = ending_data(result, findings)
        write({"script": str(job.script.path), "arguments": job.args, **ending})
    return code
