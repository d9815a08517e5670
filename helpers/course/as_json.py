"""What `--json` prints: a command's results for other programs, as one JSON object on standard output.

Everything else that a command says then goes to standard error. `docs/json.md` describes the fields.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

import click
import msgspec

from helpers.checks.headings import Heading
from helpers.course.doctor import Finding
from helpers.course.progress import Progress

FORMAT = 1


@contextmanager
def only_json() -> Iterator[TextIO]:
    """Send what is printed meanwhile to standard error; give the stream on which the JSON belongs."""
    stream = sys.stdout
    with redirect_stdout(sys.stderr):
        yield stream


def write(data: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Print data as one JSON object: ASCII, as names and prints may hold what a terminal would run."""
    click.echo(json.dumps({"format": FORMAT, **data}, indent=1), file=stream)


def doctor_data(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return what `course doctor` has found."""
    return {"findings": msgspec.to_builtins(list(findings))}


def progress_data(progress: Progress, headings: Iterable[Heading]) -> dict[str, Any]:
    """Return what a learner has done, exercise by exercise in the course's order."""
    exercises = []
    for each in headings:
        tried = progress.exercises.get(each.name)
        exercises.append(
            {
                "name": each.name,
                "number": each.number,
                "title": each.title,
                "notebook": each.notebook,
                "further": each.further,
                "hints_seen": progress.hints.get(each.name, 0),
                "attempts": None if tried is None else msgspec.to_builtins(tried),
            }
        )
    quizzes = msgspec.to_builtins(progress.quizzes)
    return {"exercises": exercises, "quizzes": quizzes, "note": progress.note}
