"""Grade one submission: its answers, in a sandbox, on visible and on hidden cases.

    file --read_answers (capped child)--> answers --judge_apart (capped child), Sandbox--> Judged --> Record

Points come from the hidden cases (the visible ones can only lower them); what the learner reads comes from
the visible ones. Behind Landlock the visible cases of all exercises are tried before any hidden one: whatever
an answer leaves in its sandbox of a hidden case, by whatever trick, cannot reach what its author reads.
They may take half of the submission's time, so that the exercises which were tried by then are finished, and
what came of them is kept for a grader that is killed before it can finish them. An exercise may take half of
the time that is left when it begins.
Behind bubblewrap each set of cases has a sandbox of its own that leaves nothing, and an exercise is finished,
and kept, before the next one is begun.
Behind Landlock sandboxes share /dev/shm: what one leaves there is removed before the next, but two that
run at the same time can talk by it. No answer can spoil another one: each that fails has failed in
a sandbox of its own. Called by `batch`, once for each file; holds one sandbox at a time.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.notebook import bytes_of
from helpers.answers.reader import UnreadableNotebook, read_answers
from helpers.checks.check_notebook import exercises_of
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.grade import grade
from helpers.checks.result import Outcome
from helpers.grading import pictures
from helpers.grading.cache import Cache, key_of
from helpers.grading.judging import Judged, judge_apart, judged
from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.records import exercise_record
from helpers.grading.references import References
from helpers.grading.sandbox.levels import Plan, Sandbox, protection_here
from helpers.grading.submissions import Job
from helpers.ranks.connection import ServerGone
from helpers.ranks.failures import LaunchError

FAULT = "harness fault"
UNJUDGED = (
    "What your function gave back is of a kind that cannot be judged. What does the task ask for?"
)
LEFT = (
    "{count} files were left in /dev/shm, by this answer or by one that ran at the same time. They were "
    "removed: look at what for"
)
_SUSPICIOUS = frozenset({Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.DEADLOCKED})
"""Outcomes that a machine in trouble could give as well: then the reference is asked."""
_SHAKY = frozenset({Outcome.TIMED_OUT, Outcome.TOO_SLOW, Outcome.CRASHED, Outcome.OUT_OF_MEMORY})
"""Outcomes that come and go with what else happens on a machine: each is tried once more, alone."""
SLOW = "by the clock alone this answer is too slow: grade it again when the machine is idle"
_LOST_AGAIN = 3
"""How often a sandbox may be ended from outside before the machine is at fault."""


@dataclass(frozen=True)
class _Try:
    """An exercise between its visible and its hidden cases. known: its record, where there is one."""

    exercise: Exercise
    answer: Answer | None
    key: str
    visible: Judged | None = None
    seconds: float = 0.0
    known: ExerciseRecord | None = None
    is_cut: bool = False
    """The time of the submission was used up: another run may give another record."""


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
    _used: bool = field(default=False, init=False)
    """Something of this submission has run in the sandbox."""
    _has_seen: bool = field(default=False, init=False)
    """The sandbox has seen hidden cases."""
    _ends: float = field(default=0.0, init=False)
    """When this submission has used up its wall time, as `time.monotonic` tells it."""
    _wall_s: float = field(default=0.0, init=False)
    """How much wall time that is, not counting waits for a turn."""
    _cpu_s: float = field(default=0.0, init=False)
    """Processor time of the sandboxes of this submission."""
    _cpu_most_s: float = field(default=0.0, init=False)
    """How much of it there may be by now."""
    _matches: dict[str, str] = field(default_factory=dict, init=False)
    """Known mistakes by what answers did, of all submissions."""

    def __enter__(self) -> Grader:
        if self.pictures != "none":
            pictures.preload()
        return self

    def __exit__(self, *args: object) -> None:
        self._drop()

    def grade(self, job: Job, told: Callable[[str], None] = lambda name: None) -> Record:
        """Grade one submission. Never raises on account of the file. told: hears each exercise's name."""
        began = time.monotonic()
        share_s, cpu_s = self._share_s(job), float(self.plan.limits.submission_cpu_s)
        self._wall_s, self._ends = share_s, began + share_s
        self._cpu_s, self._cpu_most_s = 0.0, cpu_s
        base = Record(
            job.learner,
            job.file,
            "",
            Status.UNREADABLE,
            protection=protection_here(self.plan.level),
            versions=dict(self.versions),
        )
        try:
            digest = _digest(job.path)
            wanted = exercises_of(job.path)
            found = read_answers(job.path, [exercise.name for exercise in wanted])
        except UnreadableNotebook as error:
            return replace(base, message=str(error), seconds=time.monotonic() - began)
        try:
            if self._is_cheap:
                # a sandbox holds nothing for the next one: each exercise is finished, and kept, at once
                done = []
                for exercise in wanted:
                    with self._half_of_the_time():
                        begun = self._begin(exercise, found[exercise.name], told)
                        done.append(self._finish(begun))
            else:
                tried = []
                with self._half_of_the_time():
                    for exercise in wanted:
                        with self._half_of_the_time():
                            tried.append(self._begin(exercise, found[exercise.name], told))
                done = []
                for begun in tried:
                    with self._half_of_the_time():
                        done.append(self._finish(begun))
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

    @contextmanager
    def _half_of_the_time(self) -> Iterator[None]:
        """Let what runs within have half of the time that is left: if it never ends, the rest remains."""
        wall_s = (self._ends - time.monotonic()) / 2
        cpu_s = (self._cpu_most_s - self._cpu_s) / 2
        self._ends, self._cpu_most_s = self._ends - wall_s, self._cpu_most_s - cpu_s
        try:
            yield
        finally:
            self._ends, self._cpu_most_s = self._ends + wall_s, self._cpu_most_s + cpu_s

    # --- one exercise -----------------------------------------------------------------------------

    def _begin(
        self, exercise: Exercise, found: Answer | Problem, told: Callable[[str], None]
    ) -> _Try:
        """Try the visible cases of an exercise, unless it is known what comes of them."""
        told(exercise.name)
        if isinstance(found, Problem):
            result = judged(grade(exercise, found, cell_number), exercise, False, "none")
            return _Try(exercise, None, "", known=exercise_record(exercise, found, result, None))
        key = key_of(exercise, found, self.secret, self.versions)
        if (kept := self.cache.get(key)) is not None:
            return _Try(exercise, found, key, known=replace(kept, cached=True))
        if (visible := self.cache.get_visible(key)) is not None:
            return _Try(exercise, found, key, visible)
        began = time.monotonic()
        visible = self._check(exercise, found, VISIBLE_SECRET)
        is_cut = self._is_used_up
        if not (is_cut or self._is_cheap or Outcome.TOO_SLOW in visible.outcomes):
            self.cache.put_visible(key, visible)
        return _Try(exercise, found, key, visible, time.monotonic() - began, is_cut=is_cut)

    def _finish(self, begun: _Try) -> ExerciseRecord:
        """Try the hidden cases; keep the record, unless another time may give another one."""
        if begun.known is not None:
            return begun.known
        began = time.monotonic() - begun.seconds
        record = self._tried(begun)
        record = replace(record, seconds=round(time.monotonic() - began, 3))
        is_cut = begun.is_cut or self._is_used_up
        if record.outcome != FAULT and not is_cut and not record.was_too_slow:
            record = replace(record, key=begun.key)
            self.cache.put(begun.key, record)
        return record

    def _tried(self, begun: _Try) -> ExerciseRecord:
        exercise, answer, visible = begun.exercise, begun.answer, begun.visible
        assert answer is not None and visible is not None
        hopeless = visible.outcome in _SUSPICIOUS and not any(c.credit for c in visible.cases)
        # else it would only fail once more, and take as long
        hidden = None if hopeless else self._check(exercise, answer, self.secret)
        outcomes = visible.outcomes | (hidden.outcomes if hidden is not None else set())
        unjudged = visible.unjudged or (hidden.unjudged if hidden is not None else "")
        if Outcome.FAULT in outcomes or unjudged:
            if not self.references.works(exercise):
                return fault_record(exercise)
            # only what this answer has sent could not be judged: it is wrong
            message = f"{UNJUDGED} {visible.unjudged or 'So it was in a hidden case.'}"
            visible = replace(visible, outcome=Outcome.WRONG, points=0.0, message=message)
            return replace(exercise_record(exercise, answer, visible, hidden), points=0.0)
        if outcomes & _SUSPICIOUS and not self.references.works(exercise):
            return fault_record(exercise)
        return exercise_record(exercise, answer, visible, hidden)

    def _check(self, exercise: Exercise, answer: Answer, secret: str) -> Judged:
        """Try an answer on one set of cases.

        Who fails has failed in a sandbox in which nothing else of the submission had run; and twice, where
        something around it may have been the cause.
        """
        found, was_fresh = self._try(exercise, answer, secret)
        if not found.passed and not was_fresh:
            found, _ = self._try(exercise, answer, secret, fresh=True)
        if found.outcomes & _SHAKY:
            began = time.monotonic()
            with self.plan.turns.alone() as is_alone:
                self._ends += time.monotonic() - began  # the wait for a turn is nobody's fault
                again, _ = self._try(exercise, answer, secret, fresh=True)
            found = again if again.points >= found.points else found
            if found.outcomes & _SHAKY and not is_alone:  # still nothing but the clock against it
                found = replace(found, outcome=Outcome.TOO_SLOW)
        if Outcome.TOO_SLOW in found.outcomes:
            found = replace(found, flag=found.flag or SLOW)
        return found

    def _try(
        self, exercise: Exercise, answer: Answer, secret: str, fresh: bool = False
    ) -> tuple[Judged, bool]:
        """Try an answer once; tell whether nothing had run in the sandbox before."""
        for _ in range(_LOST_AGAIN):
            if self._is_used_up:
                limits = self.plan.limits
                message = (
                    "It has used up its share of the time that a submission may take: all exercises and sets "
                    f"of cases together {self._wall_s:,.0f} s, or {limits.submission_cpu_s:,.0f} s of "
                    "processor time, and one of them half of what is left."
                )
                return Judged(Outcome.TIMED_OUT, 0.0, message), True
            began = time.monotonic()
            with self.plan.turns.with_others():
                self._ends += time.monotonic() - began
                try:
                    sandbox, was_fresh = self._open(exercise, secret, fresh)
                except (LaunchError, ServerGone) as error:
                    self._drop()
                    return Judged(Outcome.CRASHED, 0.0, str(error)[:200]), True
                left = self._ends - time.monotonic()
                sandbox.end_after(left, self._cpu_most_s - self._cpu_s)
                found = judge_apart(
                    exercise,
                    answer,
                    secret,
                    sandbox.connection,
                    self.pictures,
                    left,
                    self._matches,
                )
            if sandbox.found:
                timed_out = sandbox.is_out_of_time
                outcome = Outcome.TIMED_OUT if timed_out else Outcome.OUT_OF_MEMORY
                found = replace(found, outcome=outcome, message=f"{sandbox.found}.")
            if left := sandbox.sweep():
                found = replace(found, flag=found.flag or LEFT.format(count=left))
            lost = sandbox.lost
            if sandbox.gone or self._is_soiled(found):
                self._drop()
            if not lost:
                break
        return found, was_fresh

    @property
    def _is_cheap(self) -> bool:
        """Whether a new sandbox takes milliseconds, and leaves nothing behind."""
        return self.plan.level == "bubblewrap"

    def _share_s(self, job: Job) -> float:
        """Return the wall time for one file: all files of a learner together have `learner_s`."""
        limits = self.plan.limits
        return min(float(limits.submission_s), limits.learner_s / job.of)

    @property
    def _is_used_up(self) -> bool:
        return time.monotonic() > self._ends or self._cpu_s > self._cpu_most_s

    def _is_soiled(self, found: Judged) -> bool:
        """Tell whether something may be left in the sandbox: its server ends what it can see."""
        if Outcome.TIMED_OUT in found.outcomes or not found.cases:
            return True
        return bool(found.outcomes & _SUSPICIOUS)

    def _open(self, exercise: Exercise, secret: str, fresh: bool) -> tuple[Sandbox, bool]:
        """Return a sandbox, and tell whether it is new: for visible cases one that has seen no hidden ones.

        Where a new one takes milliseconds, each is new.
        """
        hidden = secret != VISIBLE_SECRET
        if self._used and (self._is_cheap or fresh or (self._has_seen and not hidden)):
            self._drop()
        if self._sandbox is None:
            late = exercise.notebook >= "09"
            self._sandbox = Sandbox(self.plan, self.slot, preload=late)
            self._used = self._has_seen = False
        was_fresh, self._used = not self._used, True
        self._has_seen = self._has_seen or hidden
        return self._sandbox, was_fresh

    def _drop(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._cpu_s += self._sandbox.cpu_s
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
    """Return the SHA-256 of a file that `read_answers` will judge; raise UnreadableNotebook as it does."""
    return hashlib.sha256(bytes_of(path)).hexdigest()
