"""Find out whether an exercise's reference solution works on this machine, now.

If both an answer and the reference fail, the machine is at fault, so the learner loses no points.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.reader import UnreadableNotebook, read_answers
from helpers.checks.check_answer import grade, use_one_thread
from helpers.checks.exercise import Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.registry import exercises
from helpers.checks.right_values import (
    CaseSet,
    case_sets_of,
    missing_sets,
    needs_reference,
    run_reference,
)
from helpers.grading.sandbox.levels import Plan, Sandbox
from helpers.ranks.connection import ServerExited
from helpers.ranks.failures import LaunchError


def solutions_folder() -> Path | None:
    """Return the folder of the solved notebooks, if this copy of the course has one."""
    folder = Path(__file__).parents[2] / "solutions"
    return folder if folder.is_dir() else None


@dataclass
class References:
    """The solved notebooks, read when first needed. folder: None if this copy of the course has none."""

    folder: Path | None
    plan: Plan
    slot: int = 0
    _found: dict[str, dict[str, Answer | Problem]] = field(default_factory=dict)
    _worked: set[str] = field(default_factory=set)
    """Exercises whose reference has passed here."""

    def passes_here(self, exercise: Exercise, now: bool = True) -> bool:
        """Run the reference on the visible cases in a separate sandbox. Return True if there is no reference.

        now: whether to run it even if it has passed before, because the machine may have been short of a
        resource only for a short time.
        """
        answer = self.answers(exercise.notebook).get(exercise.name)
        if not isinstance(answer, Answer) or (exercise.name in self._worked and not now):
            return True
        try:
            with (
                # this does not wait: a grader that runs alone can only be this one
                self.plan.lock.hold_shared(),
                Sandbox(self.plan, self.slot, preload=exercise.needs_wrappers) as sandbox,
            ):
                result = grade(exercise, answer, cell_number, connection=sandbox.connection)
        except (
            LaunchError,
            ServerExited,
        ):  # no rank could be started, so the answer is not to blame
            return False
        if result.passed:
            self._worked.add(exercise.name)
        return result.passed

    def run_reference(self, exercise: Exercise, secrets: Sequence[str], advice: bool) -> None:
        """Compute the expected values of these secrets' cases, if only the reference can compute them.

        The reference runs in a separate sandbox. Processes forked earlier do not have the values.

        Args:
            advice: Whether to include the cases that a check draws after a failed answer. They are the
                majority of the cases.
        """
        if not (needed := _missing_sets(exercise, secrets, advice)):
            return
        with (
            suppress(CheckFault, LaunchError, ServerExited),
            use_one_thread(),
            Sandbox(self.plan, self.slot, preload=exercise.needs_wrappers) as sandbox,
        ):
            run_reference(exercise, needed, sandbox.connection)

    def lacks_values(self, exercise: Exercise, secrets: Sequence[str]) -> bool:
        """Return whether expected values are missing because the reference has failed."""
        return bool(_missing_sets(exercise, secrets, advice=True))

    def answers(self, notebook: str) -> dict[str, Answer | Problem]:
        """Return {name: reference solution} for a notebook; {} if this copy of the course has none."""
        if notebook not in self._found:
            names = [e.name for e in exercises().values() if e.notebook == notebook]
            try:
                path = self.folder / f"{notebook}.ipynb" if self.folder else None
                self._found[notebook] = read_answers(path, names) if path else {}
            except UnreadableNotebook:  # without a reference, failures are attributed to the answer
                self._found[notebook] = {}
        return self._found[notebook]


def _missing_sets(exercise: Exercise, secrets: Sequence[str], advice: bool) -> list[CaseSet]:
    if not needs_reference(exercise):
        return []
    sets = [
        each
        for secret in secrets
        for each in (case_sets_of(exercise, secret) if advice else [(secret, "")])
    ]
    try:
        return missing_sets(exercise, sets)
    except CheckFault:  # there is no reference
        return sets
