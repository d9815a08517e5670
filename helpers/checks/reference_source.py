"""Read an exercise's reference solution, which is the base of the edits in known answers.

solutions/NN_topic.ipynb --build_answer--> source: the solution and all its parts, without the markers
                                           own: the lines of the exercise's cell
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.answers.build import build_answer
from helpers.answers.data import Answer
from helpers.answers.notebook import UnreadableNotebook, read_notebook
from helpers.checks.edits import apply_edit, make_edit

_SOLUTION_MARKERS = ("### BEGIN SOLUTION", "### END SOLUTION")


class MissingSolution(ValueError):
    """The notebook of solutions does not exist, or does not solve the exercise."""


@dataclass(frozen=True)
class Program:
    """A program as the base of edits. own_range: the lines in which an edit's lines are searched first."""

    lines: tuple[str, ...]
    own_range: tuple[int, int]

    @property
    def source(self) -> str:
        return "\n".join([*self.lines, ""])

    def apply_edit_to_source(self, edit: str) -> str:
        """Return the source with an edit applied to the exercise's cell if it fits, otherwise to the whole.

        Raises:
            ValueError: The edit fits nowhere, or in two places.
        """
        first, end = self.own_range
        try:
            edited_lines = apply_edit(self.lines[first:end], edit)
        except ValueError as error:
            # The line may be in a function of an earlier cell, which the solution calls.
            try:
                return "\n".join([*apply_edit(self.lines, edit), ""])
            except ValueError:
                raise error from None
        return "\n".join([*self.lines[:first], *edited_lines, *self.lines[end:], ""])

    def make_edit_for(self, program: str, max_lines: int) -> str:
        """Return an edit of at most `max_lines` lines that produces `program`; "" if there is none."""
        first, end = self.own_range
        return make_edit(self.lines[first:end], program, max_lines)


def whole_program(source: str) -> Program:
    """Return a whole program; the lines of an edit may be anywhere in it."""
    lines = tuple(source.splitlines())
    return Program(lines, (0, len(lines)))


@cache
def read_reference(solutions: Path, notebook: str, name: str) -> Program:
    """Return the reference solution of an exercise.

    Raises:
        MissingSolution: The notebook of solutions does not exist, or does not solve the exercise.
    """
    path = solutions / f"{notebook}.ipynb"
    try:
        cells = [cell.code for cell in read_notebook(path).cells]
    except UnreadableNotebook as error:
        raise MissingSolution(f"the solution of {name} is needed: {error}") from None
    answer = build_answer(cells, name)
    if not isinstance(answer, Answer):
        raise MissingSolution(f"the solution of {name} is needed: {answer.message}")
    lines = answer.source.splitlines()
    line = max((index for index, text in enumerate(lines, 1) if _defines(text, name)), default=1)
    own_cell = (answer.place(line) or (-1, 0))[0]
    unreachable_lines = _unreachable_lines(answer.source)
    kept_lines = [
        (text, (answer.place(number) or (-2, 0))[0] == own_cell)
        for number, text in enumerate(lines, 1)
        if not text.strip().startswith(_SOLUTION_MARKERS) and number not in unreachable_lines
    ]
    own_lines = [index for index, (_, is_own) in enumerate(kept_lines) if is_own]
    return Program(tuple(text for text, _ in kept_lines), (own_lines[0], own_lines[-1] + 1))


def _defines(line: str, name: str) -> bool:
    return re.match(rf"(?:async )?(?:def|class) {name}\b|{name}\s*=", line) is not None


def _unreachable_lines(source: str) -> set[int]:
    """Return the lines that never run, such as the faulty script replaced by a solution."""
    unreachable: set[int] = set()
    for node in ast.parse(source).body:
        body = node.body if isinstance(node, ast.FunctionDef) else []
        returns = [statement for statement in body if isinstance(statement, ast.Return)]
        if returns and returns[0] is not body[-1]:
            unreachable |= set(range((returns[0].end_lineno or 0) + 1, (node.end_lineno or 0) + 1))
    return unreachable
