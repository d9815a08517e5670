"""Recognize a script exercise's known mistakes by a check's observations of the answer's run.

    # %% half a file is loaded | seen: half a file loaded
    # You loaded half a file as if it were complete, because a rank was killed while writing.

Entries shared by several exercises of a notebook are in the notebook's `shared.answers`.

A script takes seconds, so its known mistakes are not run for comparison, unlike those of other
exercises. Instead, each observation of the answer's run has a name. A `Finding` lists these names in `seen`,
and `Exercise.observe` yields them for a failed run. If several entries match, the first entry counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from helpers.checks.mistakes import KnownMistake, known_mistakes, shared_mistakes
from helpers.ranks.failures import RankFailed, RankTimeout, is_consequence

if TYPE_CHECKING:  # both modules need torch, which is not needed for the entries
    from helpers.checks.execution import Execution
    from helpers.checks.exercise import Exercise
    from helpers.checks.headings import Heading
    from helpers.ranks.run import Run

DIFFERENT_LINES = "ranks wait at different lines"
PEER_LEFT = "a peer left"
TIMED_OUT = "timed out"


def known_outcomes(exercise: Exercise | Heading) -> tuple[KnownMistake, ...]:
    """Return the entries of an exercise, then the entries of its notebook that it does not replace."""
    own_mistakes = [entry for entry in known_mistakes(exercise) if entry.seen]
    titles = {entry.title for entry in own_mistakes}
    return (
        *own_mistakes,
        *(entry for entry in shared_mistakes(exercise) if entry.title not in titles),
    )


def recognize_mistake(exercise: Exercise, execution: Execution) -> KnownMistake | None:
    """Return the first entry whose observation explains all problems of a case."""
    run = execution.run
    if run.failure is not None:
        observe = exercise.observe
        observations = {*(observe(execution.case, run) if observe else ()), *_observe_failure(run)}
    else:
        findings = [
            finding
            for finding in (*execution.all_findings(), execution.joint_finding())
            if finding is not None
        ]
        # an entry that explains only some of the wrong ranks is at best half of the explanation
        observations = (
            set.intersection(*(set(finding.seen) for finding in findings)) if findings else set()
        )
    return next((entry for entry in known_outcomes(exercise) if entry.seen in observations), None)


def _observe_failure(run: Run) -> Iterator[str]:
    """Yield the observations that apply to every failed run."""
    failure = run.failure
    if isinstance(failure, RankFailed):
        yield f"raised {failure.error.kind}"
        if is_consequence(failure.error):
            yield PEER_LEFT
    elif isinstance(failure, RankTimeout):
        if len({wait.state for wait in failure.waits if wait.event is None}) > 1:
            yield DIFFERENT_LINES
        yield TIMED_OUT
