"""Grade one submission: its answers, behind walls, on visible and on hidden cases.

    file --read_answers (capped child)--> answers --Sandbox, grade--> verdicts --> Record

Points come from the hidden cases, what the learner is told from the visible ones. Called by `batch`,
once for each file; holds one sandbox at a time and puts up another where an answer has broken one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from helpers.exercises.answers import Answer, Problem, cell_number
from helpers.exercises.grade import grade
from helpers.exercises.headless import exercises_of
from helpers.exercises.model import VISIBLE_SECRET, Exercise
from helpers.exercises.reader import UnreadableNotebook, read_answers
from helpers.exercises.reader_notebook import bytes_of
from helpers.exercises.result import CheckResult, Outcome
from helpers.grading.cache import Cache, key_of
from helpers.grading.pictures import picture_of
from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.records import exercise_record
from helpers.grading.references import References
from helpers.grading.submissions import Job
from helpers.grading.walls import WALLS, Plan, Sandbox
from helpers.ranks.failures import LaunchError

FAULT = "harness fault"
_SUSPICIOUS = frozenset({Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.DEADLOCKED})
"""Outcomes that a machine in trouble could give as well: then the reference is asked."""


@dataclass
class Grader:
    """Grades submissions one after the other. Use as a context manager: it ends its sandbox."""

    plan: Plan
    secret: str
    cache: Cache
    versions: Mapping[str, str]
    references: References
    slot: int = 0
    pictures: str = "failed"
    """Of which visible runs a picture is drawn: "all", "failed", "none"."""
    _sandbox: Sandbox | None = field(default=None, init=False)

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *args: object) -> None:
        self._drop()

    def grade(self, job: Job, told: Callable[[str], None] = lambda name: None) -> Record:
        """Grade one submission. Never raises on account of the file. told: hears each exercise's name."""
        began = time.monotonic()
        base = Record(
            job.learner,
            job.file,
            "",
            Status.UNREADABLE,
            walls=WALLS[self.plan.level],
            versions=dict(self.versions),
        )
        try:
            digest = _digest(job.path)
            wanted = exercises_of(job.path)
            found = read_answers(job.path, [exercise.name for exercise in wanted])
        except UnreadableNotebook as error:
            return replace(base, message=str(error), seconds=time.monotonic() - began)
        done = []
        try:
            for exercise in wanted:
                told(exercise.name)
                done.append(self._one(exercise, found[exercise.name]))
        finally:
            self._drop()  # the next submission gets a server of its own
        faults = any(each.outcome == FAULT for each in done)
        return replace(
            base,
            notebook=wanted[0].notebook,
            status=Status.HARNESS_FAULT if faults else Status.GRADED,
            sha256=digest,
            exercises=tuple(done),
            seconds=round(time.monotonic() - began, 3),
        )

    # --- one exercise -----------------------------------------------------------------------------

    def _one(self, exercise: Exercise, found: Answer | Problem) -> ExerciseRecord:
        if isinstance(found, Problem):
            result = grade(exercise, found, cell_number)
            return exercise_record(exercise, found, result, None)
        key = key_of(exercise, found, self.secret, self.versions)
        if (kept := self.cache.get(key)) is not None:
            return replace(kept, cached=True)
        record = self._tried(exercise, found)
        if record.outcome == FAULT:
            return record  # not kept: another time it may work
        record = replace(record, key=key)
        self.cache.put(key, record)
        return record

    def _tried(self, exercise: Exercise, answer: Answer) -> ExerciseRecord:
        """Try an answer; once more where the reference has failed here too."""
        for attempt in (1, 2):
            began = time.monotonic()
            visible, hidden, broke = self._both(exercise, answer)
            suspect = broke or any(
                result.outcome in _SUSPICIOUS for result in (visible, hidden) if result is not None
            )
            if visible is not None and not (suspect and not self.references.works(exercise)):
                record = exercise_record(exercise, answer, visible, hidden)
                picture = picture_of(visible, self.pictures)
                return replace(record, picture=picture, seconds=round(time.monotonic() - began, 3))
            self._drop()
            if attempt == 2:
                break
        return fault_record(exercise)

    def _both(
        self, exercise: Exercise, answer: Answer
    ) -> tuple[CheckResult | None, CheckResult | None, bool]:
        """Try the visible and then the hidden cases; tell also whether the harness itself broke."""
        try:
            visible = self._check(exercise, answer, VISIBLE_SECRET)
            if visible.outcome in _SUSPICIOUS and not any(case.passed for case in visible.cases):
                return visible, None, False  # it would only fail once more, and take as long
            return visible, self._check(exercise, answer, self.secret), False
        except LaunchError:
            return None, None, True

    def _check(self, exercise: Exercise, answer: Answer, secret: str) -> CheckResult:
        sandbox = self._open(exercise)
        result = grade(exercise, answer, cell_number, secret, connection=sandbox.connection)
        if not result.cases and result.outcome is Outcome.CRASHED and not sandbox.found:
            raise LaunchError(result.message)  # ranks could not be started: not the answer's doing
        if sandbox.found:
            result = replace(result, outcome=Outcome.OUT_OF_MEMORY, message=f"{sandbox.found}.")
        if sandbox.gone or result.outcome in _SUSPICIOUS:
            self._drop()  # what is left in it, nobody knows
        return result

    def _open(self, exercise: Exercise) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = Sandbox(self.plan, self.slot)
            if exercise.notebook >= "09":
                self._sandbox.connection.preload()
        return self._sandbox

    def _drop(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


def fault_record(exercise: Exercise) -> ExerciseRecord:
    """Say that an exercise could not be graded here: it counts for nothing, for or against."""
    return ExerciseRecord(
        exercise.name,
        exercise.number,
        exercise.heading,
        FAULT,
        0.0,
        0.0,
        exercise.further,
        message="This machine could not grade it: the reference solution fails here as well.",
        flags=("harness fault: grade this exercise again, or elsewhere",),
    )


def _digest(path: Path) -> str:
    """Give the SHA-256 of a file that `read_answers` will judge; raise UnreadableNotebook as it does."""
    return hashlib.sha256(bytes_of(path)).hexdigest()
