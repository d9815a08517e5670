"""`%%after ring_all_reduce`: run a cell that uses the reader's answer after the answer has passed its check.

Until the check has passed, the cell shows only a line with the required exercise, so that running all cells
of a fresh notebook causes no errors. With several names, all answers must have passed: `%%after gpipe
one_f_one_b`.

The line is removed before IPython sees the cell. The rest then runs like any cell, with the usual line
numbers, tracebacks and output, and may begin with `%%ranks 2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from helpers.check_result import CheckResult
from helpers.checks.headings import UnknownExercise, find_heading

_MAGIC = "%%after"
# keep results only in this kernel, because answers do not survive a restart
_passed_exercises: set[str] = set()


def remember_result(name: str, *, passed: bool) -> None:
    """Store the result of an exercise's last check in this kernel."""
    if passed:
        _passed_exercises.add(name)
    else:
        _passed_exercises.discard(name)


def remember_check(result: CheckResult) -> CheckResult:
    """Store a finished check in this kernel."""
    remember_result(result.name, passed=result.passed)
    return result


@dataclass(frozen=True, repr=False)
class WaitingCell:
    """The display of a cell with `%%after` until its exercises have passed."""

    waits_for: tuple[str, ...]

    def __repr__(self) -> str:
        each = " and ".join(map(_exercise_name, self.waits_for))
        verb = "has" if len(self.waits_for) == 1 else "have"
        return (
            f"This cell uses your own answer. It runs once {each} {verb} passed. If that was before you "
            "restarted the kernel, choose Run → Run All Above Selected Cell."
        )

    def _repr_html_(self) -> str:
        return f'<div style="opacity: 0.75">{escape(repr(self))}</div>'


def _exercise_name(name: str) -> str:
    heading = find_heading(name)
    return f"Exercise {heading.number} ({heading.title})"


def only_after(lines: list[str]) -> list[str]:
    """Transform a cell's lines. IPython calls this for each cell, and to test if it is complete."""
    if not lines or not lines[0].startswith(_MAGIC):
        return lines
    names = lines[0].removeprefix(_MAGIC).split()
    try:
        missing = [name for name in names if find_heading(name).name not in _passed_exercises]
    except UnknownExercise as error:
        return [f"raise NameError({f'{_MAGIC}: {error}'!r})\n"]
    if not missing:
        rest = lines[1:]
        return rest if rest and rest[0].startswith("%%") else ["\n", *rest]
    return [f"__import__({__name__!r}, fromlist=['WaitingCell']).WaitingCell({tuple(missing)!r})\n"]


def register(shell: Any) -> None:
    """Register `%%after` with an IPython shell, once."""
    if only_after not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(only_after)
