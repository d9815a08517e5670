"""What rebuilding an answer gives: an `Answer` to check, or the `Problem` that there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

ProblemKind = Literal[
    "not_defined", "not_attempted", "syntax_error", "newer_syntax", "unresolved", "too_large"
]
"""not_defined: no cell defines it, so the notebook may be a different one. newer_syntax: a syntax error in a
notebook that was written with a newer Python than this one."""

NO_ATTEMPT: tuple[ProblemKind, ...] = ("not_defined", "not_attempted")

Where = Callable[[int], str]
"""How messages call the cell with an index: "cell 4" in a notebook, "cell [4]" in a kernel."""


@dataclass(frozen=True)
class Origin:
    """Where one piece of an answer's source was written.

    first, count: its lines in the answer's source. cell: index in the cells given; line: its first
    line there. Lines count from 1.
    """

    first: int
    count: int
    cell: int
    line: int


@dataclass(frozen=True)
class Answer:
    """The source of the function or class called `name`, ready to be executed in a rank.

    notes: what was repaired or may go wrong, each a line for the learner.
    """

    name: str
    source: str
    origins: tuple[Origin, ...]
    notes: tuple[str, ...] = ()

    def place(self, line: int) -> tuple[int, int] | None:
        """Return (cell, line in that cell) of a line of `source`; None where there is none."""
        # line by line of the statements that were joined; between them there is nothing
        for origin in self.origins:
            if origin.first <= line < origin.first + origin.count:
                return origin.cell, origin.line + line - origin.first
        return None


@dataclass(frozen=True)
class Problem:
    """Why there is no answer called `name` to be checked. The message is for the learner."""

    kind: ProblemKind
    message: str
    name: str = ""
    notes: tuple[str, ...] = ()
