"""Split a solved notebook for teachers into parts, each with a heading, minutes and cells.

A part ends at the next heading, even if both are in one cell. An exercise's minutes are in its heading; the
minutes of other parts are estimated from words, cells and quizzes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from helpers.checks.headings import Heading, headings
from helpers.course.notebook_file import Notebook, read_notebook, source_of
from helpers.course.workspace import Workspace, WorkspaceError

WORDS_PER_MINUTE = 130
MINUTES_PER_CELL = 0.5
MINUTES_PER_QUIZ = 1.5
HOMEWORK_PARTS = ("Next", "Further reading", "Questions people ask")
"""Parts that learners read at home."""

_HEADING_PATTERN = re.compile(r"^#{1,3} +(.+)$")
_FOLD_TAG_PATTERN = re.compile(r"</?details>")
"""HTML tags for folding a recurring part of a notebook on the screen."""
_EXERCISE_PATTERN = re.compile(r"Exercise (\d+\.\d+): ")
_QUIZ_PATTERN = re.compile(r'^predict\("([^"]+)"\)', re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A piece of a notebook under one heading. outputs: the outputs of code, in Jupyter's format."""

    is_code: bool
    source: str
    outputs: tuple[dict[str, Any], ...] = ()

    @property
    def quiz(self) -> str:
        """The id of the cell's quiz, or ""."""
        match = _QUIZ_PATTERN.search(self.source) if self.is_code else None
        return match[1] if match else ""

    @property
    def is_check(self) -> bool:
        return self.is_code and bool(re.match(r"result = check\(|next_steps\(", self.source))

    @property
    def needs_answer(self) -> bool:
        """Whether the cell uses the learner's answer."""
        return self.is_code and self.source.startswith("%%after ")

    @property
    def has_only_imports(self) -> bool:
        """Whether the cell contains only imports."""
        if not self.is_code or self.source.startswith("%"):
            return False
        body = ast.parse(self.source).body
        return bool(body) and all(isinstance(each, ast.Import | ast.ImportFrom) for each in body)


# Compare parts by identity, because they are looked up very often while making a program.
@dataclass(frozen=True, eq=False)
class Part:
    """The cells under one heading. exercise: the exercise, or None for other parts."""

    title: str
    cells: tuple[Cell, ...]
    exercise: Heading | None = None

    @property
    def is_taught(self) -> bool:
        return self.title not in HOMEWORK_PARTS

    @property
    def is_optional(self) -> bool:
        return self.exercise is not None and self.exercise.further

    @cached_property
    def minutes(self) -> int:
        if self.exercise is not None:
            return self.exercise.minutes
        if not self.is_taught:
            return 0
        words = sum(len(cell.source.split()) for cell in self.cells if not cell.is_code)
        quizzes = sum(bool(cell.quiz) for cell in self.cells)
        shown = sum(cell.is_code and not cell.has_only_imports for cell in self.cells) - quizzes
        exact = words / WORDS_PER_MINUTE + MINUTES_PER_CELL * shown + MINUTES_PER_QUIZ * quizzes
        return max(1, round(exact))


@dataclass(frozen=True, eq=False)
class Lesson:
    """One notebook. title: the title with the number, for example "02 · Blocking send and receive"."""

    notebook: str
    title: str
    parts: tuple[Part, ...]

    @property
    def number(self) -> str:
        return self.notebook[:2]

    @property
    def explained_parts(self) -> tuple[Part, ...]:
        """The taught parts: all except exercises and homework."""
        return tuple(part for part in self.parts if part.exercise is None and part.is_taught)

    @property
    def core_exercises(self) -> tuple[Part, ...]:
        """The exercises that are not optional."""
        return tuple(part for part in self.parts if part.exercise and not part.is_optional)


def read_lessons(workspace: Workspace) -> tuple[Lesson, ...]:
    """Return all notebooks in the course's order. Raise WorkspaceError if there are no solutions."""
    return tuple(
        read_lesson(path.stem, read_notebook(path)) for path in solution_notebooks(workspace)
    )


def solution_notebooks(workspace: Workspace) -> list[Path]:
    """Return the files of the solved notebooks. Raise WorkspaceError if there are none."""
    found = sorted(workspace.solutions.glob("*.ipynb"))
    if not found:
        raise WorkspaceError(
            f"This copy of the course is a learner's: there are no solutions in {workspace.solutions}. "
            "Use the full copy."
        )
    return found


def read_lesson(name: str, notebook: Notebook) -> Lesson:
    """Read one solved notebook. name: its file's name without ".ipynb"."""
    own = {heading.number: heading for heading in headings().values()}
    parts: list[Part] = []
    for title, cell in _split_at_headings(notebook):
        if title or not parts:
            number = _EXERCISE_PATTERN.match(title)
            exercise = own.get(number[1]) if number else None
            parts.append(Part(exercise.title if exercise else title, (), exercise))
        last = parts[-1]
        parts[-1] = Part(last.title, (*last.cells, *([cell] if cell.source else [])), last.exercise)
    return Lesson(name, parts[0].title, tuple(parts))


def _split_at_headings(notebook: Notebook) -> Iterator[tuple[str, Cell]]:
    """Split the cells at headings, yielding (heading above the piece or "", piece)."""
    for cell in notebook["cells"]:
        source = source_of(cell)
        if cell["cell_type"] == "code":
            yield "", Cell(True, source, tuple(cell["outputs"]))
            continue
        title, lines, fenced = "", list[str](), False
        for line in source.splitlines():
            # comments in a fenced program look like headings
            fenced ^= line.startswith("```")
            match = None if fenced else _HEADING_PATTERN.match(line)
            if match is None:
                lines += [] if _FOLD_TAG_PATTERN.match(line) else [line]
                continue
            if title or any(lines):
                yield title, Cell(False, "\n".join(lines).strip())
            title, lines = match[1].strip(), []
        yield title, Cell(False, "\n".join(lines).strip())
