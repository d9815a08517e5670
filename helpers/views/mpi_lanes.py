"""A job under mpiexec: its command, a lane for each rank with what it printed, how it ended.

No times, process ids or folders: the same from run to run if what the ranks print is.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from helpers.views.plain import WRAPPED, clean, lines_of

if TYPE_CHECKING:
    from helpers.jobs.run import MpiRun

_RED = "rgb(200, 74, 0)"
_GREY = "rgba(128, 128, 128, 0.45)"


def mpi_text(run: MpiRun) -> str:
    """Write the lanes as text."""
    parts = [_command(run)]
    for rank, lines in enumerate(_lanes(run)):
        parts += [f"  rank {rank} | {line}".rstrip() for line in lines]
    if run.failure is not None:
        parts.append(f"{type(run.failure).__name__}: {clean(str(run.failure))}")
    return "\n".join(parts)


def mpi_html(run: MpiRun) -> str:
    """Draw the lanes as HTML: the failure first."""
    edge = f"2px solid {_GREY}" if run.ok else f"6px double {_RED}"
    banner = ""
    if run.failure is not None:
        text = f"<b>{type(run.failure).__name__}</b>: {escape(clean(str(run.failure)))}"
        banner = f'<div style="padding: 4px 0px; white-space: pre-wrap">{text}</div>'
    rows = "".join(
        f'<tr><td style="text-align: left; vertical-align: top; opacity: 0.7"><b>rank {rank}</b></td>'
        '<td style="text-align: left"><pre '
        f'style="margin: 0px; {WRAPPED}">{escape(chr(10).join(lines) or "printed nothing")}</pre></td></tr>'
        for rank, lines in enumerate(_lanes(run))
    )
    return (
        f'<div style="border-left: {edge}; padding: 2px 10px; max-width: 70em">{banner}'
        f'<code style="font-size: 90%">{escape(_command(run))}</code><table>{rows}</table></div>'
    )


def _command(run: MpiRun) -> str:
    return " ".join(w.rsplit("/", 1)[-1] if w.startswith("/") else w for w in run.command)


def _lanes(run: MpiRun) -> list[list[str]]:
    errors = run.errors if run.failure is not None else ("",) * len(run.output)
    pairs = zip(run.output, errors, strict=True)
    return [[*lines_of(output), *lines_of(error)] for output, error in pairs]
