"""From what came of visible and hidden cases to what is written down of an exercise."""

from __future__ import annotations

import ast

from helpers.answers.build import Answer, Problem
from helpers.checks.exercise import Exercise
from helpers.grading import bypasses
from helpers.grading.judging import Judged
from helpers.grading.record import ExerciseRecord

INNER_IMPORT = "imports `{name}`, which is not the door that answers use: look at what for"


def exercise_record(
    exercise: Exercise,
    found: Answer | Problem,
    visible: Judged,
    hidden: Judged | None,
) -> ExerciseRecord:
    """Put what came of the visible and of the hidden cases (None: not tried) into one record."""
    both = [visible] if hidden is None else [visible, hidden]
    worst = next((each for each in both if not each.passed), both[-1])
    source = found.source if isinstance(found, Answer) else ""
    return ExerciseRecord(
        exercise.name,
        exercise.number,
        exercise.heading,
        worst.outcome.value,
        # an answer that fails a visible case does not have all points, even where no hidden one finds it
        round(min(visible.points, hidden.points), 4) if hidden is not None else 0.0,
        exercise.points,
        exercise.further,
        tuple(case for each in both for case in each.cases),
        message=visible.message,
        notes=visible.notes,
        flags=(
            *inner_imports(source),
            *bypasses.reaching_in(source),
            *(bypasses.flags(source) if _has_forbidden(exercise) else ()),
            *(each.flag for each in both if each.flag),
        ),
        reported=exercise.reported,
        picture=visible.picture,
        answer=source,
    )


def _has_forbidden(exercise: Exercise) -> bool:
    return any(rule.forbids for rule in exercise.rules)


def inner_imports(source: str) -> tuple[str, ...]:
    """Flag imports of the course's inner modules: answers need its door, `helpers`, alone."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names if a.name.startswith("helpers.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("helpers."):
            names.add(str(node.module))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {node.value[:80]} if node.value.startswith("helpers.") else set()
    return tuple(INNER_IMPORT.format(name=name) for name in sorted(names))
