"""What the expected values of a case say of a run; read by the modules look_at_*."""

from __future__ import annotations

from helpers.exercises.model import Case
from helpers.ranks.run import Run


def problems(case: Case, run: Run) -> list[str]:
    """Ask each rank's expected value what is wrong, in words; "" where nothing is.

    For cases whose expected values are callables. Without values (the run failed) or without
    expected ones there is nothing to ask, and the list is empty.
    """
    if run.failure is not None or case.expected is None:
        return []
    return [str(wanted(value)) for wanted, value in zip(case.expected, run.values, strict=True)]


def first_problem(case: Case, run: Run) -> str:
    """Return what is wrong on the first rank where something is, or ""."""
    return next(filter(None, problems(case, run)), "")
