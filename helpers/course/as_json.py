"""Print a command's results for other programs (`--json`), as one JSON object on standard output.

With this option, all other output of the command is printed on standard error. `docs/json.md` describes the
fields.
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
    """Redirect printed output to standard error; yield the stream for the JSON."""
    stream = sys.stdout
    with redirect_stdout(sys.stderr):
        yield stream


def write(data: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Print data as one JSON object in ASCII, because names and output may contain terminal codes."""
    click.echo(json.dumps({"format": FORMAT, **data}, indent=1), file=stream)


def doctor_data(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the findings of `course doctor`."""
    return {"findings": msgspec.to_builtins(list(findings))}


def progress_data(progress: Progress, headings: Iterable[Heading]) -> dict[str, Any]:
    """Return a learner's progress, exercise by exercise in the course's order."""
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
    return {
        "exercises": exercises,
        "quizzes": quizzes,
        "path": progress.path,
        "note": progress.note,
    }
