"""Define the result of building an answer: an `Answer` to check, or a `Problem`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

ProblemKind = Literal[
    "not_defined", "not_attempted", "syntax_error", "newer_syntax", "unresolved", "too_large"
]
"""Kinds of problems.

not_defined: no cell defines the name, so the notebook may be a different one. newer_syntax: a syntax error in
a notebook written with a newer version of Python than this one.
"""

NO_ATTEMPT: tuple[ProblemKind, ...] = ("not_defined", "not_attempted")

CellNamer = Callable[[int], str]
"""Returns a cell's name for messages, from its index: "cell 4" in a notebook, "cell [4]" in a kernel."""


@dataclass(frozen=True)
class Origin:
    """The place where one piece of an answer's source was written. Lines are counted from 1.

    Args:
        first, count: The piece's first line in the answer's source, and its number of lines.
        cell: The cell's index.
        line: The piece's first line in that cell.
    """

    first: int
    count: int
    cell: int
    line: int


@dataclass(frozen=True)
class Answer:
    """The source of the function or class called `name`, ready to be executed in a rank.

    notes: lines for the learner about repairs and possible failures.
    """

    name: str
    source: str
    origins: tuple[Origin, ...]
    notes: tuple[str, ...] = ()

    def place(self, line: int) -> tuple[int, int] | None:
        """Return (cell, line in that cell) for a line of `source`, or None for lines from no cell."""
        # Only lines after the last statement have no origin.
        for origin in self.origins:
            if origin.first <= line < origin.first + origin.count:
                return origin.cell, origin.line + line - origin.first
        return None


@dataclass(frozen=True)
class Problem:
    """The reason why there is no answer called `name` to check. The message is for the learner."""

    kind: ProblemKind
    message: str
    name: str = ""
    notes: tuple[str, ...] = ()
