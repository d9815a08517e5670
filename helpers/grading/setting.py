"""What `course grade` was asked to do, and the error that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class CannotGrade(Exception):
    """Nothing can be done, or not to the end. One line: what is wrong, and what to do."""


@dataclass(frozen=True)
class Setting:
    """The command line: made once by the command, and passed on unchanged to where it is used.

    folder: what was handed in. out: where results go. sandbox: "auto", or a level of `sandbox.levels`. jobs:
    how many graders at a time, by default two for each core. roster: the platform's export. pictures: of
    which visible runs, "all", "failed" or "none". verify: grade once more and report differences; nothing
    is written. release: the bundle that was handed out. title: of the class. github: print annotations.
    scheduler: the address of a Dask scheduler, "" for processes on this machine. notebooks: numbers or names
    of the class's, with spaces between; see `reports.standing.course_of`. policy, overrides, groups: files;
    where none is named, policy.toml, overrides.csv and groups.csv in `out`, if they exist. again: use nothing
    that was kept.
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
