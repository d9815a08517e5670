"""Grade one submission: its answers, behind walls, on visible and on hidden cases.

    file --read_answers (capped child)--> answers --Sandbox, grade--> verdicts --> Record

Points come from the hidden cases (the visible ones can only lower them), what the learner is told from
the visible ones. So the visible cases of all exercises are tried before any hidden one: whatever an
answer leaves in its sandbox of a hidden case, by whatever trick, cannot reach what its author is told.
Called by `batch`, once for each file; holds one sandbox at a time and puts up another where an answer
has broken one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.notebook import bytes_of
from helpers.answers.reader import UnreadableNotebook, read_answers
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.grade import grade
from helpers.checks.headless import exercises_of
from helpers.checks.result import CaseVerdict, CheckResult, Outcome
from helpers.grading.cache import Cache, key_of
from helpers.grading.pictures import picture_of
from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.records import exercise_record
from helpers.grading.references import References
from helpers.grading.submissions import Job
from helpers.grading.walls import WALLS, Plan, Sandbox

FAULT = "harness fault"
_SUSPICIOUS = frozenset({Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.DEADLOCKED})
"""Outcomes that a machine in trouble could give as well: then the reference is asked."""


@dataclass(frozen=True)
class _Try:
    """An exercise between its visible and its hidden cases. known: its record, where there is one."""

    exercise: Exercise
    answer: Answer | None
    key: str
    visible: CheckResult | None = None
    seconds: float = 0.0
    known: ExerciseRecord | None = None


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
    _has_seen: bool = field(default=False, init=False)
    """The sandbox has seen hidden cases."""

    _lost: bool = field(default=False, init=False)
    """A sandbox was ended from outside: what was seen in it says nothing of the answer."""

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
        try:
            tries = [self._begin(exercise, found[exercise.name], told) for exercise in wanted]
            done = [self._finish(each) for each in tries]
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

    def _begin(
        self, exercise: Exercise, found: Answer | Problem, told: Callable[[str], None]
    ) -> _Try:
        """Try the visible cases of an exercise, unless it is known what comes of them."""
        told(exercise.name)
        if isinstance(found, Problem):
            result = grade(exercise, found, cell_number)
            return _Try(exercise, None, "", known=exercise_record(exercise, found, result, None))
        key = key_of(exercise, found, self.secret, self.versions)
        if (kept := self.cache.get(key)) is not None:
            return _Try(exercise, found, key, known=replace(kept, cached=True))
        began = time.monotonic()
        visible = self._check(exercise, found, VISIBLE_SECRET)
        return _Try(exercise, found, key, visible, time.monotonic() - began)

    def _finish(self, begun: _Try) -> ExerciseRecord:
        """Try the hidden cases; keep the record, unless another time may give another one."""
        if begun.known is not None:
            return begun.known
        record = self._tried(begun)
        if record.outcome != FAULT:
            record = replace(record, key=begun.key)
            self.cache.put(begun.key, record)
        return record

    def _tried(self, begun: _Try) -> ExerciseRecord:
        """Try an answer; once more where the reference has failed here too, or nothing could start."""
        exercise, answer, visible = begun.exercise, begun.answer, begun.visible
        assert answer is not None and visible is not None
        began = time.monotonic() - begun.seconds
        for attempt in (1, 2):
            if attempt == 2:
                self._lost = False
                visible = self._check(exercise, answer, VISIBLE_SECRET)
            hopeless = visible.outcome in _SUSPICIOUS and not any(c.passed for c in visible.cases)
            # else it would only fail once more, and take as long
            hidden = None if hopeless else self._check(exercise, answer, self.secret)
            results = [result for result in (visible, hidden) if result is not None]
            suspect = any(_outcomes(result) & _SUSPICIOUS for result in results)
            if any(result.outcome is Outcome.FAULT for result in results):
                if not self.references.works(exercise):
                    return fault_record(exercise)
                # only what this answer has sent could not be judged: it is wrong
                visible = replace(visible, outcome=Outcome.WRONG, points=0.0)
                record = exercise_record(exercise, answer, visible, hidden)
                return replace(record, points=0.0)
            broke = any(not result.cases for result in results)
            works = not suspect or self.references.works(exercise)
            if works and ((attempt == 2 and not self._lost) or not (suspect and broke)):
                record = exercise_record(exercise, answer, visible, hidden)
                picture = picture_of(visible, self.pictures)
                return replace(record, picture=picture, seconds=round(time.monotonic() - began, 3))
            self._drop()
        return fault_record(exercise)

    def _check(self, exercise: Exercise, answer: Answer, secret: str) -> CheckResult:
        """Try an answer on one set of cases. No cases: its ranks could not be started, or judged."""
        try:
            sandbox = self._open(exercise, secret)
            result = grade(exercise, answer, cell_number, secret, connection=sandbox.connection)
        except Exception as error:  # on account of what it sent, or of this machine: `_tried` asks
            said = f"what it gave back could not be judged ({type(error).__name__})."
            result = CheckResult(
                exercise.name,
                exercise.heading,
                Outcome.CRASHED,
                message=said,
                out_of=exercise.points,
                notes=answer.notes,
            )
        if self._sandbox is not None and self._sandbox.found:
            message = f"{self._sandbox.found}."
            result = replace(result, outcome=Outcome.OUT_OF_MEMORY, message=message)
        if self._sandbox is not None and self._sandbox.lost:
            result = replace(result, outcome=Outcome.CRASHED, cases=())
            self._lost = True
        if self._sandbox is not None and (self._sandbox.gone or self._is_soiled(result)):
            self._drop()
        return replace(result, cases=tuple(map(_without_values, result.cases)))

    def _is_soiled(self, result: CheckResult) -> bool:
        """Tell whether something may be left in the sandbox: its server ends what it can see."""
        outcomes = _outcomes(result)
        if Outcome.TIMED_OUT in outcomes or not result.cases:
            return True
        return self.plan.level != "bubblewrap" and bool(outcomes & _SUSPICIOUS)

    def _open(self, exercise: Exercise, secret: str) -> Sandbox:
        """Give a sandbox: for visible cases one that has seen no hidden ones."""
        hidden = secret != VISIBLE_SECRET
        if self._sandbox is not None and (self._sandbox.gone or (self._has_seen and not hidden)):
            self._drop()
        if self._sandbox is None:
            late = exercise.notebook >= "09"
            self._sandbox, self._has_seen = Sandbox(self.plan, self.slot, preload=late), False
        self._has_seen = self._has_seen or hidden
        return self._sandbox

    def _drop(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


def _outcomes(result: CheckResult) -> set[Outcome]:
    return {result.outcome, *(case.outcome for case in result.cases)}


def _without_values(case: CaseVerdict) -> CaseVerdict:
    """Let go of what ranks returned and printed, which has been judged: it can be a lot."""
    if case.run is None:
        return case
    size = case.run.world_size
    nothing: dict[str, Any] = {"values": [None] * size, "output": [""] * size}
    world = replace(case.world, **nothing) if case.world is not None else None
    return replace(case, run=replace(case.run, **nothing), world=world)


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
