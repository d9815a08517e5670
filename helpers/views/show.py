"""Connect results, which are plain data, with their texts and pictures. Only this module does so.

`helpers/__init__` calls `register_displays` before returning the first name. Code that does not import from
`helpers`, such as `course check`, calls the view directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from helpers.check_result import CheckResult
from helpers.jobs.run import MpiRun, TorchrunRun
from helpers.ranks.run import FailedRun, Run, RunningRanks, StoppedRanks
from helpers.views.job_lanes import agents_html, agents_text, mpi_html, mpi_text
from helpers.views.lanes import (
    lanes_failed_html,
    lanes_failed_text,
    lanes_html,
    lanes_live_html,
    lanes_live_text,
    lanes_stopped_html,
    lanes_stopped_text,
    lanes_text,
)
from helpers.views.verdict import verdict_html, verdict_text

_VIEWS: dict[type, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
    Run: (lanes_text, lanes_html),
    FailedRun: (lanes_failed_text, lanes_failed_html),
    RunningRanks: (lanes_live_text, lanes_live_html),
    StoppedRanks: (lanes_stopped_text, lanes_stopped_html),
    TorchrunRun: (agents_text, agents_html),
    MpiRun: (mpi_text, mpi_html),
    CheckResult: (verdict_text, verdict_html),
}


def register_displays() -> None:
    """Make each result appear as its text in an interpreter, and as its picture at the end of a cell."""
    for result, (text, html) in _VIEWS.items():
        for name, view in (("__repr__", text), ("_repr_html_", html)):
            setattr(result, name, view)
