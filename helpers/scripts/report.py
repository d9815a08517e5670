"""Write a script's run as one self-contained page: its end, the player, and the output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from helpers.course.page import environment
from helpers.ranks.run import Run
from helpers.scripts.ending import outcome_name
from helpers.scripts.run_script import ScriptJob
from helpers.scripts.step_findings import Finding
from helpers.views.lanes import lanes_html
from helpers.views.plain import plural
from helpers.views.timeline import timeline

_TITLES = {
    "passed": "all ranks succeeded",
    "deadlock": "deadlock",
    "timeout": "out of time",
    "died": "a rank died",
    "failed": "a rank failed",
}


def report_page(job: ScriptJob, run: Run, findings: Sequence[Finding] = ()) -> str:
    """Return the page as HTML."""
    player = timeline(run).live if len(run.trace) else None
    template = environment(Path(__file__).parent / "templates").get_template("report.html")
    return template.render(
        script=job.script.name,
        arguments=" ".join(job.args),
        ranks=plural(run.world_size, "rank"),
        seconds=f"{run.seconds:.1f}",
        title=_TITLES[outcome_name(run)],
        ok=run.ok,
        failure=str(run.failure) if run.failure is not None else "",
        player=player() if player is not None else "",
        lanes=lanes_html(run),
        findings=[str(finding) for finding in findings],
        notes=[*run.notes, *run.thread_errors],
    )


def write_report(path: Path, job: ScriptJob, run: Run, findings: Sequence[Finding] = ()) -> None:
    """Write the page to a file."""
    path.write_text(report_page(job, run, findings), encoding="utf-8")
