"""From what a check found to what is written down: hidden cases lose all that would give them away."""

from __future__ import annotations

import ast
import itertools

from helpers.answers.build import Answer, Problem
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.result import CaseVerdict, CheckResult
from helpers.grading import roads
from helpers.grading.explained import mismatch
from helpers.grading.record import CaseRecord, ExerciseRecord

_MOST = 4_000
"""Characters of one message."""

INNER_IMPORT = "imports `{name}`, which is not the door that answers use: look at what for"


def exercise_record(
    exercise: Exercise,
    found: Answer | Problem,
    visible: CheckResult,
    hidden: CheckResult | None,
) -> ExerciseRecord:
    """Put the results of the visible and of the hidden cases (None: not tried) into one record."""
    cases = [_visible(case) for case in visible.cases]
    if hidden is not None:
        cases += [_hidden(number, case) for number, case in enumerate(hidden.cases, 1)]
    worst = visible if not visible.passed or hidden is None else hidden
    source = found.source if isinstance(found, Answer) else ""
    return ExerciseRecord(
        exercise.name,
        exercise.number,
        exercise.heading,
        worst.outcome.value,
        # whoever fails a visible case has not all points, even where no hidden one finds it
        round(min(visible.points, hidden.points), 4) if hidden is not None else 0.0,
        exercise.points,
        exercise.further,
        tuple(cases),
        message=visible.message[:_MOST],
        notes=tuple(note[:_MOST] for note in visible.notes),
        flags=(
            *inner_imports(source),
            *(roads.flags(source) if _has_forbidden(exercise) else ()),
            *_unexplained(exercise, visible),
            *(_unexplained(exercise, hidden) if hidden is not None else ()),
        ),
        answer=source,
    )


def _unexplained(exercise: Exercise, result: CheckResult) -> tuple[str, ...]:
    """Give the first mismatch between calls and bytes in a case that has brought points."""
    if exercise.own_network or exercise.kind not in {Kind.RANKS, Kind.MODULE}:
        return ()
    runs = (case.world or case.run for case in result.cases if case.credit)
    worlds = {id(run): run for run in runs if run is not None}
    return tuple(itertools.islice(filter(None, map(mismatch, worlds.values())), 1))


def _has_forbidden(exercise: Exercise) -> bool:
    return any(rule.forbids for rule in exercise.rules)


def _visible(case: CaseVerdict) -> CaseRecord:
    return CaseRecord(
        case.label,
        False,
        case.outcome.value,
        case.credit,
        tuple((r.rank, r.given, r.expected, r.got[:_MOST], r.problem[:_MOST]) for r in case.rows),
        tuple(text[:_MOST] for text in case.broken),
        case.message[:_MOST],
        case.advice[:_MOST],
    )


def _hidden(number: int, case: CaseVerdict) -> CaseRecord:
    """Leave out the label too: some name what the case hands out."""
    return CaseRecord(f"hidden case {number}", True, case.outcome.value, case.credit)


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
