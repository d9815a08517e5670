"""Turn the check's results for one answer into an `ExerciseRecord`.

Learners receive feedback on the visible cases. Points come from the hidden cases, of which only the outcome
and the credit are stored.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from functools import cache
from importlib import import_module

import msgspec

from helpers.answers.build import Answer, Problem
from helpers.check_result import CaseRecord, CaseVerdict, CheckResult, Outcome, Row
from helpers.checks.exercise import Exercise
from helpers.grading import bypasses
from helpers.grading.record import ExerciseRecord, build_record
from helpers.ranks.failures import RankDied
from helpers.ranks.run import Run
from helpers.trace.events import Trace

_MAX_TEXT_CHARS = 4_000
# Limits for one flag: number of replaced functions, and characters of each name.
_MAX_NAMES, _MAX_NAME_CHARS = 8, 200
# Limits for a drawn run.
_MAX_EVENTS, _MAX_TRACE_BYTES = 400, 300_000
REPLACED_FLAG = (
    "has replaced {names} in a rank, and the rank's reports might depend on this: check the reason"
)
NEWER_PYTHON_FLAG = "written with a newer Python than the grader's: grade it with that version"
SANDBOX_ENDED = (
    "All processes of the sandbox were terminated from outside before this case had a result."
)
UNJUDGED_MESSAGE = (
    "Your function returned a kind of value that cannot be judged. What does the task ask for?"
)


def record_of_results(
    exercise: Exercise,
    answer: Answer | Problem,
    visible: CheckResult,
    hidden: CheckResult | None = None,
    pictures: str = "none",
) -> ExerciseRecord:
    """Return the record of an answer's visible and hidden cases. hidden: None if they did not run.

    pictures: the visible runs to draw: "all", "failed" or "none".
    """
    results = [visible] if hidden is None else [visible, hidden]
    worst = next((each for each in results if not each.passed), results[-1])
    outcome, message = worst.outcome, visible.message
    # an answer that fails a visible case never receives all points, even if it passes all hidden cases
    points = round(min(each.points for each in results), 4) if hidden is not None else 0.0
    if any(each.unjudged or each.outcome is Outcome.FAULT for each in results):
        # `grader` checks whether the reference can be judged here. If so, the answer is at fault
        where = visible.unjudged or "So it was in a hidden case."
        outcome, message, points = Outcome.WRONG, f"{UNJUDGED_MESSAGE} {where}", 0.0
    drawn = pictures == "all" or (pictures == "failed" and not visible.passed)
    picture, trace = _draw_run(visible.run) if drawn else ("", "")
    cases = [_visible_record(case) for case in visible.cases]
    cases += [_hidden_record(k, case) for k, case in enumerate(hidden.cases, 1)] if hidden else []
    source = answer.source if isinstance(answer, Answer) else ""
    flags = [
        *bypasses.find_flags(exercise, source),
        *(flag for r in results for flag in _replacement_flags(r)),
    ]
    if isinstance(answer, Problem) and answer.kind == "newer_syntax":
        flags.append(NEWER_PYTHON_FLAG)
    return build_record(
        exercise,
        outcome.value,
        points,
        cases=tuple(cases),
        message=_cut(message),
        notes=tuple(map(_cut, visible.notes)),
        flags=tuple(dict.fromkeys(flags)),
        reported=exercise.reported,
        picture=picture,
        trace=trace,
        answer=source,
    )


def failed_record(
    exercise: Exercise, answer: Answer, outcome: Outcome, message: str
) -> ExerciseRecord:
    """Return the record of an answer that has no results apart from an outcome and a message."""
    result = CheckResult(exercise.name, exercise.heading, outcome, message=message)
    return record_of_results(exercise, answer, result)


def _visible_record(case: CaseVerdict) -> CaseRecord:
    """Return the record of a visible case, with texts of limited size."""
    return replace(
        case.as_record(),
        rows=tuple(map(_cut_row, case.rows)),
        broken=tuple(map(_cut, case.broken)),
        message=_cut(_message(case)),
        advice=_cut(case.advice),
    )


def _cut(text: str) -> str:
    return text[:_MAX_TEXT_CHARS]


def _cut_row(row: Row) -> Row:
    return Row(row.rank, *map(_cut, (row.given, row.expected, row.got, row.problem)))


def _message(case: CaseVerdict) -> str:
    """Return a case's message, in a form that is true in a report."""
    failure = None if case.run is None else case.run.failure
    # advice for a notebook does not apply to a report
    is_lost = isinstance(failure, RankDied) and failure.server_exited
    return SANDBOX_ENDED if is_lost else case.message


def _hidden_record(number: int, case: CaseVerdict) -> CaseRecord:
    """Return the record of a hidden case, without its label, because some labels reveal inputs."""
    return CaseRecord(
        label=f"hidden case {number}", hidden=True, outcome=case.outcome, credit=case.credit
    )


def _replacement_flags(result: CheckResult) -> list[str]:
    """Return a flag with the functions replaced by the answer in worlds that earned points."""
    runs = (case.world or case.run for case in result.cases if case.credit)
    names = sorted(
        {name[:_MAX_NAME_CHARS] for run in runs if run is not None for name in run.replaced}
    )
    return [REPLACED_FLAG.format(names=", ".join(names[:_MAX_NAMES]))] if names else []


@cache
def import_early(pictures: bool) -> None:
    """Import, once in the grader, the modules that every judge needs for sending cases and drawing."""
    for name in ("helpers.ranks.sending", "helpers.ranks.unsendable"):
        import_module(name)
    if pictures:
        from helpers.views.timeline import timeline

        timeline(Run(1, [None], [""], Trace(1)))._repr_png_()


def _draw_run(run: Run | None) -> tuple[str, str]:
    """Draw a run using only its trace. Return a PNG in base64, and the trace as JSON.

    Both are "" if the run has no events or too many events, or cannot be drawn. The trace is also "" if it is
    too long.
    """
    if run is None or not 0 < len(run.trace) <= _MAX_EVENTS:
        return "", ""
    from helpers.views.timeline import timeline

    try:
        picture = base64.b64encode(timeline(run)._repr_png_()).decode()
        trace = msgspec.json.encode(run.trace).decode()
    except Exception:  # a trace that cannot be drawn must not cost points
        return "", ""
    return picture, trace if len(trace) <= _MAX_TRACE_BYTES else ""
