"""Grade one submission: run each answer in separate sandboxes, on visible and on hidden cases.

    file --read_answers (capped child)--> answers --judging (capped child, sandbox)--> attempts --> Record

Points come from the hidden cases; visible cases can only lower them. Feedback comes only from the visible
cases. Because most answers pass, all cases run together first. If one fails, this run is discarded, and the
visible cases, followed by the hidden cases, run in a new sandbox. If a busy machine may be the cause of a
failure (`machine_faults`), the answer runs once more at the end of the batch, without other running answers,
so that no other answer has to wait.

So an answer can fail only in a sandbox that ran no other part of its submission, and its feedback comes from
ranks that had not received hidden inputs. The exercises of a submission share only its time budget: each
exercise may use half of the remaining time. With Landlock, sandboxes share /dev/shm: leftover files are
removed when a sandbox ends, but two sandboxes that run at the same time can communicate through them.

`batch` calls `Grader.grade` once for each file. A grader uses one sandbox at a time.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.notebook import read_bytes
from helpers.answers.reader import UnreadableNotebook
from helpers.check_result import CaseRecord, Outcome
from helpers.checks.check_answer import grade
from helpers.checks.check_notebook import find_answers, notes_on_strays
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.limits import advice_on
from helpers.grading import bypasses
from helpers.grading.cache import Cache, answer_key, program_key
from helpers.grading.cells import renumber_cells, restore_cell_names
from helpers.grading.judge_process import Attempt, run_attempt
from helpers.grading.machine_faults import Doubt
from helpers.grading.record import ExerciseRecord, Record, Status, build_record
from helpers.grading.reference_health import References
from helpers.grading.reports.copies import is_course_solution, split_by_notebook
from helpers.grading.results import failed_record, import_early, record_of_results
from helpers.grading.sandbox.levels import Plan, Sandbox, protection_here
from helpers.grading.submissions import Job
from helpers.ranks.connection import ServerExited
from helpers.ranks.failures import LaunchError
from helpers.views.plain import plural

FAULT = Outcome.FAULT.value
NOT_RUN = (
    "All answers of this file are the course's own solutions, word for word, so they were not run."
)
SLOW_FLAG = (
    "this answer failed only by exceeding the time limit: grade it again when the machine is idle"
)
# Outcomes that become "too slow" if the answer could not be tried without other running answers.
_SLOW_OUTCOMES = {Outcome.TIMED_OUT.value, Outcome.TOO_SLOW.value, Outcome.CRASHED.value}
# Number of times that a sandbox may be terminated from outside before the machine is blamed.
_MAX_LOST = 3


@dataclass
class _Budget:
    """The remaining wall time and processor time of sandboxes."""

    wall_s: float
    cpu_s: float

    @property
    def is_used_up(self) -> bool:
        return min(self.wall_s, self.cpu_s) <= 0

    def spend(self, wall_s: float, cpu_s: float) -> None:
        self.wall_s, self.cpu_s = self.wall_s - wall_s, self.cpu_s - cpu_s

    @contextmanager
    def lend_half(self) -> Iterator[_Budget]:
        """Lend half of the remaining time, so that an answer that never ends leaves the other half."""
        half = _Budget(self.wall_s / 2, self.cpu_s / 2)
        self.spend(half.wall_s, half.cpu_s)
        yield half
        self.spend(-half.wall_s, -half.cpu_s)


@dataclass(frozen=True)
class _Attempt:
    """The record of an exercise. uncertain_record: if it is uncertain, its form with marks, for the cache."""

    record: ExerciseRecord
    uncertain_record: ExerciseRecord | None = None


@dataclass(frozen=True)
class Graded:
    """The record of a submission.

    uncertain: {exercise: record} of answers that may have failed because of a busy machine. These answers are
    tried once more, one at a time, when no other submission is waiting.
    """

    record: Record
    uncertain: Mapping[str, ExerciseRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class Grader:
    """Grades submissions one after another, keeping no data about them except in its cache.

    Args:
        slot: A number not used by any other running grader.
        pictures: The visible runs to draw: "all", "failed" or "none".
        print_line: Function that prints a line for the instructor.
    """

    plan: Plan
    secret: str
    cache: Cache
    versions: Mapping[str, str]
    references: References
    slot: int = 0
    pictures: str = "failed"
    print_line: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        import_early(self.pictures != "none")

    def grade(self, job: Job) -> Record:
        """Grade one submission. The file's contents never cause an exception."""
        return self.settle(job, self.try_once(job)).record

    def try_once(self, job: Job) -> Graded:
        """Grade one submission, without a second try of answers that a busy machine may have failed."""
        began = time.monotonic()
        base = Record(
            job.learner,
            job.file,
            "",
            Status.UNREADABLE,
            protection=protection_here(self.plan.level),
            versions=dict(self.versions),
        )
        try:
            digest = hashlib.sha256(read_bytes(job.path)).hexdigest()
            wanted, found = find_answers(job.path)
        except UnreadableNotebook as error:
            return Graded(replace(base, message=str(error), seconds=time.monotonic() - began))
        base = replace(base, notebook=wanted[0].notebook, sha256=digest)
        base = replace(base, notes=notes_on_strays(wanted, found))
        # Some learners hand in the whole course folder with all solutions, which would take minutes to grade.
        if job.file_count > 1 and (own := self._record_of_solutions(base, wanted, found)):
            return Graded(replace(own, seconds=round(time.monotonic() - began, 3)))
        done, uncertain = list[ExerciseRecord](), dict[str, ExerciseRecord]()
        budget = self._budget(job)
        for exercise in wanted:
            with budget.lend_half() as half:
                tried = self._grade_exercise(exercise, found[exercise.name], half)
            done.append(tried.record)
            uncertain |= {exercise.name: tried.uncertain_record} if tried.uncertain_record else {}
        seconds = round(time.monotonic() - began, 3)
        return Graded(_with_exercises(base, done, seconds), uncertain)

    def settle(self, job: Job, graded: Graded) -> Graded:
        """Try the uncertain answers of a submission once more, without other running answers."""
        if not graded.uncertain:
            return graded
        began = time.monotonic()
        try:
            wanted, found = find_answers(job.path)
        except (
            UnreadableNotebook
        ):  # the file was changed or removed meanwhile, so the next run grades it
            return Graded(graded.record)
        settled, budget = dict[str, ExerciseRecord](), self._budget(job)
        for exercise in wanted:
            first, answer = graded.uncertain.get(exercise.name), found[exercise.name]
            if first is not None and isinstance(answer, Answer):
                with budget.lend_half() as half:
                    settled[exercise.name] = self._try_alone(job, exercise, answer, first, half)
        record = graded.record
        exercises = [settled.get(each.name, each) for each in record.exercises]
        seconds = round(record.seconds + time.monotonic() - began, 3)
        return Graded(_with_exercises(record, exercises, seconds))

    def _budget(self, job: Job) -> _Budget:
        limits = self.plan.limits
        # All files of a learner share `learner_s`.
        share_s = min(float(limits.submission_s), limits.learner_s / job.file_count)
        return _Budget(share_s, float(limits.submission_cpu_s))

    def _record_of_solutions(
        self, base: Record, exercises: Sequence[Exercise], answers: Mapping[str, Answer | Problem]
    ) -> Record | None:
        """Return the record of a file that contains only the course's solutions, and None for other files."""
        known: dict[str, Answer | Problem] = {}
        for notebook in dict.fromkeys(exercise.notebook for exercise in exercises):
            known |= self.references.answers(notebook)
        own = {name: each.source for name, each in known.items() if isinstance(each, Answer)}
        record = replace(
            base,
            status=Status.GRADED,
            exercises=tuple(
                build_record(
                    exercise, Outcome.NOT_ATTEMPTED.value, message=NOT_RUN, answer=each.source
                )
                for exercise in exercises
                if isinstance(each := answers[exercise.name], Answer)
            ),
        )
        complete = len(record.exercises) == len(exercises)
        return (
            record
            if complete and all(is_course_solution(x, own) for x in split_by_notebook(record))
            else None
        )

    # --- one exercise -----------------------------------------------------------------------------

    def _grade_exercise(
        self, exercise: Exercise, given_answer: Answer | Problem, budget: _Budget
    ) -> _Attempt:
        """Return the record of one exercise, from the cache or from a run in a sandbox."""
        if isinstance(given_answer, Problem):
            return _Attempt(
                record_of_results(
                    exercise, given_answer, grade(exercise, given_answer, cell_number)
                )
            )
        answer, cells = renumber_cells(given_answer)
        if (kept := self._cached(exercise, answer)) is not None:
            return _Attempt(restore_cell_names(kept, cells))
        began = time.monotonic()
        came = self._try_apart(exercise, answer, budget)
        seconds = round(time.monotonic() - began, 3)
        if came.doubt >= Doubt.MACHINE:
            first = replace(came.record, seconds=seconds)
            return _Attempt(restore_cell_names(first, cells), first)
        record = self._settled(exercise, answer, came, budget, seconds)
        return _Attempt(restore_cell_names(record, cells))

    def _cached(self, exercise: Exercise, answer: Answer) -> ExerciseRecord | None:
        """Return the record of an equal answer, or None if no such answer has run."""
        key, program = self._keys(exercise, answer)
        if (kept := self.cache.get(key)) is not None:
            return replace(kept, cached=True)
        if program and (kept := self.cache.get(program)) is not None:
            flags = bypasses.find_flags(exercise, answer.source)  # flags also depend on comments
            return replace(kept, cached=True, key=key, answer=answer.source, flags=flags)
        return None

    def _keys(self, exercise: Exercise, answer: Answer) -> tuple[str, str]:
        # The key covers answer, cells, secret, checks, engine and level. If all of these are equal, so is the
        # result.
        parts = exercise, answer, self.secret, self.versions
        return answer_key(*parts), program_key(*parts)

    def _settled(
        self, exercise: Exercise, answer: Answer, attempt: Attempt, budget: _Budget, seconds: float
    ) -> ExerciseRecord:
        """Return the final record of an answer. Cache the record if only the answer can be its cause."""
        record, doubt = attempt.record, attempt.doubt
        if doubt and not self._reference_works(exercise, now=doubt is not Doubt.CHECK):
            record = fault_record(exercise)
        elif doubt is Doubt.CLOCK:
            record = replace(record, flags=(*record.flags, SLOW_FLAG))
        record = replace(record, seconds=seconds)
        # Do not cache a result that may be caused by the machine or the clock, so that the next run tries
        # again.
        if record.outcome != FAULT and doubt is not Doubt.CLOCK and not budget.is_used_up:
            key, program = self._keys(exercise, answer)
            record = replace(record, key=key)
            self.cache.put(key, record)
            # Flags and pictures are for a person, so they are not shared between equal answers.
            if record.passed and program and not (record.flags or record.picture):
                self.cache.put(program, record)
        return record

    def _reference_works(self, exercise: Exercise, now: bool) -> bool:
        """Return whether the reference solution works here. If it does not, the right values are unknown."""
        if self.references.lacks_values(exercise, (VISIBLE_SECRET, self.secret)):
            return False
        return self.references.passes_here(exercise, now)

    def _try_apart(self, exercise: Exercise, answer: Answer, budget: _Budget) -> Attempt:
        """Run an answer on all cases together and, if one fails, on visible and hidden cases separately."""
        # pictures show the ranks' actions, and in a shared world the ranks have inputs of hidden cases
        if exercise.may_share_world and self.pictures != "all":
            both = self._try_once(exercise, answer, budget, in_shared_worlds=True)
            if both.record.passed:
                return both
        return self._try_once(exercise, answer, budget)

    def _try_alone(
        self,
        job: Job,
        exercise: Exercise,
        given_answer: Answer,
        first_record: ExerciseRecord,
        budget: _Budget,
    ) -> ExerciseRecord:
        """Run an answer without other running answers. Return the better of both records.

        first_record: the record of its first try.
        """
        answer, cells = renumber_cells(given_answer)
        if (kept := self._cached(exercise, answer)) is not None:
            return restore_cell_names(kept, cells)
        minutes = plural(math.ceil(max(0.0, budget.wall_s) / 60), "more minute")
        self.print_line(f"{job.learner}: {exercise.name} will run again alone, for up to {minutes}")
        began = time.monotonic()
        with self.plan.lock.hold_exclusive() as is_alone:
            again = self._try_once(exercise, answer, budget)
        best = (
            again
            if again.record.points >= first_record.points
            else Attempt(first_record, Doubt.MACHINE)
        )
        if best.doubt >= Doubt.MACHINE and not is_alone and best.record.outcome in _SLOW_OUTCOMES:
            # it failed again, and only because of the clock
            best = Attempt(replace(best.record, outcome=Outcome.TOO_SLOW.value), Doubt.CLOCK)
        seconds = round(first_record.seconds + time.monotonic() - began, 3)
        record = self._settled(exercise, answer, best, budget, seconds)
        return restore_cell_names(record, cells)

    def _try_once(
        self, exercise: Exercise, answer: Answer, budget: _Budget, in_shared_worlds: bool = False
    ) -> Attempt:
        """Run an answer once, in a separate sandbox."""
        if budget.is_used_up:
            limits = self.plan.limits
            message = (
                "It has used up its share of the submission's time. All exercises together may take "
                f"{limits.submission_s:,} s, or {limits.submission_cpu_s:,} s of processor time, and a "
                "single one may take half of the time that is left."
            )
            return Attempt(failed_record(exercise, answer, Outcome.TIMED_OUT, message), Doubt.CHECK)
        with self.plan.lock.hold_shared():
            # compute them before forking a judge, because it needs the expected values
            secrets = VISIBLE_SECRET, self.secret
            self.references.run_reference(exercise, secrets, advice=not in_shared_worlds)
            for _ in range(_MAX_LOST):
                began = time.monotonic()
                try:
                    with Sandbox(self.plan, self.slot, exercise.needs_wrappers) as sandbox:
                        sandbox.end_after(budget.wall_s, budget.cpu_s)
                        parts = exercise, answer, self.secret, sandbox.connection, budget.wall_s
                        found = run_attempt(*parts, self.pictures, in_shared_worlds)
                        found, is_lost = _with_end_reason(found, sandbox), sandbox.lost
                except (LaunchError, ServerExited) as error:
                    crashed = failed_record(exercise, answer, Outcome.CRASHED, str(error)[:200])
                    return Attempt(crashed, Doubt.MACHINE)
                budget.spend(time.monotonic() - began, sandbox.cpu_s)
                if not is_lost:
                    break
        return found


def _with_exercises(base: Record, exercises: Sequence[ExerciseRecord], seconds: float) -> Record:
    """Return a graded record with these exercises."""
    # A single fault makes the next run grade the file again, but the other exercises are cached.
    faults = any(each.outcome == FAULT for each in exercises)
    status = Status.HARNESS_FAULT if faults else Status.GRADED
    return replace(base, status=status, exercises=tuple(exercises), seconds=seconds)


def _with_end_reason(attempt: Attempt, sandbox: Sandbox) -> Attempt:
    """Return the attempt. If a limit ended its sandbox, adapt its outcome, message and cases to this limit.

    The ranks only saw that they were killed, so their report and the check's report do not contain the
    reason.
    """
    limit = sandbox.found
    if limit is None:
        return attempt
    outcome, cases = limit.outcome.value, list[CaseRecord]()
    for case in attempt.record.cases:
        if case.outcome == Outcome.PASSED.value:
            cases.append(case)
        elif not any(each.outcome == outcome and each.hidden is case.hidden for each in cases):
            advice = "" if case.hidden else advice_on(limit.outcome)
            cases.append(
                CaseRecord(
                    label=case.label, hidden=case.hidden, outcome=outcome, credit=0.0, advice=advice
                )
            )
    record = replace(
        attempt.record,
        outcome=outcome,
        message=f"{limit.text}.",
        cases=tuple(cases),
        picture="",
        trace="",
    )
    return Attempt(record, Doubt.MACHINE if limit.depends_on_machine else Doubt.CHECK)


def fault_record(exercise: Exercise) -> ExerciseRecord:
    """Return the record of an exercise that this machine could not grade and that does not count."""
    return build_record(
        exercise,
        FAULT,
        out_of=0.0,
        message="This machine could not grade it: the reference solution fails here as well.",
        flags=("harness fault: grade this exercise again, or on a different machine",),
    )
