"""Define the options of `course grade`, and the error that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class CannotGrade(Exception):
    """Grading cannot start, or cannot finish. The message is one line with the problem and advice."""


@dataclass(frozen=True)
class Setting:
    """The options of `course grade`, parsed once and passed on unchanged.

    Args:
        folder: The submissions.
        out: The folder for results.
        sandbox: "auto", or a level of `sandbox.levels`.
        jobs: The number of parallel graders; by default two for each core.
        roster: The platform's export.
        pictures: Which visible runs to draw: "all", "failed" or "none".
        verify: Whether to grade again and report differences, without writing anything.
        release: The bundle that was handed out.
        title: The title of the class.
        github: Whether to print annotations for GitHub Actions.
        scheduler: The address of a Dask scheduler, or "" for processes on this machine.
        notebooks: Numbers or names of the class's notebooks, separated by spaces. See
            `reports.standing.course_of`.
        policy, overrides, groups: Files with these settings. By default, policy.toml, overrides.csv and
            groups.csv in `out` are read if they exist.
        again: Whether to ignore cached results.
    """

    folder: Path
    out: Path
    sandbox: str = "auto"
    jobs: int | None = None
    roster: Path | None = None
    pictures: str = "failed"
    verify: bool = False
    release: Path | None = None
    title: str | None = None
    github: bool = False
    scheduler: str = ""
    notebooks: str = ""
    policy: Path | None = None
    overrides: Path | None = None
    groups: Path | None = None
    again: bool = False
