"""How a class is graded: one object, made once by the command and passed on unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.staged import Staged


@dataclass(frozen=True)
class Setting:
    """How a batch is graded. solutions: the folder of the solved notebooks, if there is one here."""

    out: Path
    level: str
    staged: Staged
    secret: str
    solutions: Path | None
    pictures: str = "failed"
    limits: Limits = Limits()
    use_cache: bool = True
    scheduler: str = ""
    """The address of a Dask scheduler, "" for processes on this machine."""
