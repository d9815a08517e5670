"""Compute the final points: weighted, then reduced for lateness, then overridden.

`reports.standing` adds them to a learner's standing, which is the basis of all reports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from helpers.check_result import Outcome
from helpers.checks.headings import headings
from helpers.checks.registry import get
from helpers.grading.points.overrides import Override
from helpers.grading.points.policy import Policy
from helpers.grading.record import ExerciseRecord, Record, Status, build_record

_DIGITS = 4


@dataclass(frozen=True)
class CountedExercise(ExerciseRecord):
    """A recorded exercise with the final values of points and out_of.

    Args:
        share: The recorded share of its points.
        bonus: Whether its out_of is excluded from the maximum number of points.
        override: The line with which a person has set the points.
    """

    share: float = 0.0
    bonus: bool = False
    override: Override | None = None


def apply_weights(record: Record, policy: Policy) -> Record:
    """Return a record whose exercises are `CountedExercise`, with the policy's weights."""
    exercises = [_weight_exercise(each, policy) for each in record.exercises]
    core = sum(each.out_of for each in exercises if not each.bonus)
    bonus = sum(each.out_of for each in exercises if each.bonus)
    # Reduce the weights instead of the points, so that points and out_of always match.
    factor = min(1.0, policy.most_bonus * core / bonus) if bonus and core else 1.0
    return replace(
        record, exercises=tuple(_scale(each, factor) if each.bonus else each for each in exercises)
    )


def _scale(exercise: CountedExercise, factor: float) -> CountedExercise:
    points, out_of = (round(factor * each, _DIGITS) for each in (exercise.points, exercise.out_of))
    return replace(exercise, points=points, out_of=out_of)


def _weight_exercise(exercise: ExerciseRecord, policy: Policy) -> CountedExercise:
    own = exercise.out_of
    if not own and exercise.name in headings():  # the exercise could not be graded here
        own = get(exercise.name).points
    weight = policy.weight_of(exercise.name, own)
    share = exercise.points / exercise.out_of if exercise.out_of else 0.0
    further, bonus = policy.is_further(exercise.name), policy.is_bonus(exercise.name)
    counts = {"points": round(share * weight, _DIGITS), "out_of": weight, "further": further}
    return CountedExercise(**{**vars(exercise), **counts}, share=share, bonus=bonus)


def reduce_points(record: Record, factor: float) -> Record:
    """Return a record whose points are multiplied by a factor, for lateness."""
    points = (replace(x, points=round(x.points * factor, _DIGITS)) for x in record.exercises)
    return replace(record, exercises=tuple(points))


def apply_override(record: Record, override: Override, policy: Policy) -> Record:
    """Return a record with the points set by a person, adding the exercise if it is missing."""
    tries = {each.name: each for each in record.exercises if isinstance(each, CountedExercise)}
    name = override.exercise
    if name not in tries:
        tries[name] = _weight_exercise(build_record(get(name), Outcome.NOT_ATTEMPTED.value), policy)
        order = list(headings())
        tries = dict(sorted(tries.items(), key=lambda item: order.index(item[0])))
    tries[name] = replace(tries[name], points=override.points, override=override)
    return replace(record, exercises=tuple(tries.values()))


def empty_record(learner: str, notebook: str) -> Record:
    """Return a record for points given without a file."""
    message = "Nothing was handed in; the points were set by the instructor."
    return Record(learner, "", notebook, Status.GRADED, message=message)


def override_of(exercise: ExerciseRecord) -> Override | None:
    """Return the line with which a person has set an exercise's points, or None."""
    return exercise.override if isinstance(exercise, CountedExercise) else None


def is_bonus(exercise: ExerciseRecord) -> bool:
    """Return whether an exercise's points are not part of the maximum number of points."""
    return isinstance(exercise, CountedExercise) and exercise.bonus
