"""Grade one submission: its answers, in a sandbox, on visible and on hidden cases.

    file --read_answers (capped child)--> answers --Judge (capped child, sandbox)--> ExerciseRecord --> Record

Points come from the hidden cases (the visible ones can only lower them); what the learner reads comes from
the visible ones. Behind Landlock the visible cases of all exercises are tried before any hidden one: whatever
an answer leaves in its sandbox of a hidden case, by whatever trick, cannot reach what its author reads.
They may take half of the submission's time, so that the exercises which were tried by then are finished, and
what came of them is kept for a grader that is killed before it can finish them. An exercise may take half of
the time that is left when it begins.
Behind bubblewrap each exercise has a sandbox of its own that leaves nothing, and an exercise is finished, and
kept, before the next one is begun. First all cases are tried together (`pass_all`), as most answers pass. Of
one that does not, nothing is kept: its visible cases are tried in a new sandbox, and the hidden ones follow
there if these have passed.
Behind Landlock sandboxes share /dev/shm: what one leaves there is removed before the next, but two that
run at the same time can talk by it. No answer can spoil another one: each that fails has failed in
a sandbox of its own. Called by `batch`, once for each file; holds one sandbox at a time.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.notebook import bytes_of
from helpers.answers.reader import UnreadableNotebook
from helpers.checks.check_notebook import answers_in
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.grade import grade
from helpers.checks.kinds import Kind
from helpers.checks.result import Outcome
from helpers.grading import bypasses
from helpers.grading.cache import Cache, key_of, program_key
from helpers.grading.cells import marked, named
from helpers.grading.judging import (
    NOT_JUDGED,
    Judge,
    Judged,
    hidden_label,
    preload,
    written_down,
)
from helpers.grading.record import ExerciseRecord, Record, Status, record_of
from helpers.grading.references import References
from helpers.grading.reports.copies import by_notebook, is_own
from helpers.grading.sandbox.levels import Plan, protection_here
from helpers.grading.submissions import Job
from helpers.ranks.connection import ServerGone
from helpers.ranks.failures import LaunchError
from helpers.views.plain import plural

FAULT = Outcome.FAULT.value
UNJUDGED = (
    "What your function gave back is of a kind that cannot be judged. What does the task ask for?"
)
LEFT = (
    "{count} files were left in /dev/shm, by this answer or by one that ran at the same time. They were "
    "removed: look at what for"
)
NOT_RUN = (
    "All answers of this file are the course's own solutions, word for word, so they were not run."
)
# Outcomes that a machine in trouble could give as well: then the reference is asked.
_SUSPICIOUS = {o.value for o in (Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.DEADLOCKED)}
# Outcomes that come and go with what else happens on a machine: each is tried once more, alone.
_SHAKY = {
    o.value for o in (Outcome.TIMED_OUT, Outcome.TOO_SLOW, Outcome.CRASHED, Outcome.OUT_OF_MEMORY)
}
SLOW = "by the clock alone this answer is too slow: grade it again when the machine is idle"
# How often a sandbox may be ended from outside before the machine is at fault.
_LOST_AGAIN = 3


class _Budget:
    """The time that a submission may take: wall time, and processor time of its sandboxes."""

    def __init__(self, wall_s: float, cpu_s: float) -> None:
        self.wall_s, self.cpu_s = wall_s, cpu_s
        self._ends = time.monotonic() + wall_s
        self._cpu_left_s = cpu_s

    @property
    def left(self) -> tuple[float, float]:
        """Wall time and processor time from now on."""
        return self._ends - time.monotonic(), self._cpu_left_s

    @property
    def is_used_up(self) -> bool:
        return min(self.left) < 0

    def spend(self, cpu_s: float) -> None:
        self._cpu_left_s -= cpu_s

    @contextmanager
    def half(self) -> Iterator[None]:
        """Let what runs within have half of what is left: if it never ends, the rest remains."""
        wall_s, cpu_s = (each / 2 for each in self.left)
        self._ends, self._cpu_left_s = self._ends - wall_s, self._cpu_left_s - cpu_s
        try:
            yield
        finally:
            self._ends, self._cpu_left_s = self._ends + wall_s, self._cpu_left_s + cpu_s

    def forgive(self, since: float) -> None:
        """Give back what has passed since a time of `time.monotonic`: a wait for a turn is nobody's fault."""
        self._ends += time.monotonic() - since


@dataclass(frozen=True)
class _Try:
    """An exercise between its visible and its hidden cases. known: its record, where there is one.

    answer, cells: as `marked` gives them. program: the key that equal programs share. is_cut: the time of the
    submission was used up, and another run may give another record. is_own: as `judging.Judged` has it, of
    the visible cases. hidden: of the hidden cases, where they passed together with the visible ones.
    """

    exercise: Exercise
    answer: Answer | None = None
    cells: tuple[int, ...] = ()
    key: str = ""
    program: str = ""
    visible: ExerciseRecord | None = None
    seconds: float = 0.0
    known: ExerciseRecord | None = None
    is_cut: bool = False
    is_own: bool = False
    hidden: Judged | None = None


@dataclass
class Grader:
    """Grades submissions one after the other. Use as a context manager: it ends its sandbox.

    pictures: of which visible runs one is drawn, "all", "failed" or "none". say: prints a line for the
    instructor.
    """

    plan: Plan
    secret: str
    cache: Cache
    versions: Mapping[str, str]
    references: References
    slot: int = 0
    pictures: str = "failed"
    say: Callable[[str], None] = lambda line: None
    _judge: Judge | None = field(default=None, init=False)
    _time: _Budget = field(default_factory=lambda: _Budget(0.0, 0.0), init=False)
    _learner: str = field(default="", init=False)
    """Of the submission that is being graded."""
    _matches: dict[str, str] = field(default_factory=dict, init=False)
    """Known mistakes by what answers did, of all submissions."""

    def __post_init__(self) -> None:
        preload(self.pictures != "none")

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *args: object) -> None:
        self._drop()

    def grade(self, job: Job, told: Callable[[str], None] = lambda name: None) -> Record:
        """Grade one submission. Never raises on account of the file. told: hears each exercise's name."""
        began = time.monotonic()
        limits = self.plan.limits
        # All files of a learner together have `learner_s`.
        share_s = min(float(limits.submission_s), limits.learner_s / job.of)
        self._time = _Budget(share_s, float(limits.submission_cpu_s))
        self._learner = job.learner
        base = Record(
            job.learner,
            job.file,
            "",
            Status.UNREADABLE,
            protection=protection_here(self.plan.level),
            versions=dict(self.versions),
        )
        try:
            digest = hashlib.sha256(bytes_of(job.path)).hexdigest()
            wanted, found = answers_in(job.path)
        except UnreadableNotebook as error:
            return replace(base, message=str(error), seconds=time.monotonic() - began)
        base = replace(base, notebook=wanted[0].notebook, sha256=digest)
        # Whole course folders are handed in, with all solutions: running these would take minutes for each.
        if job.of > 1 and (own := self._without_run(base, wanted, found)):
            return replace(own, seconds=round(time.monotonic() - began, 3))
        half, done, tried = self._time.half, list[ExerciseRecord](), list[_Try]()
        try:
            if self._is_cheap:
                # a sandbox holds nothing for the next one: each exercise is finished, and kept, at once
                for exercise in wanted:
                    with half():
                        done.append(self._finish(self._begin(exercise, found[exercise.name], told)))
            else:
                with half():
                    for exercise in wanted:
                        with half():
                            tried.append(self._begin(exercise, found[exercise.name], told))
                for begun in tried:
                    with half():
                        done.append(self._finish(begun))
        finally:
            self._drop()  # the next submission gets a server of its own
        # One such exercise is enough to grade the file again: what was kept is not tried twice.
        faults = any(each.outcome == FAULT for each in done)
        return replace(
            base,
            status=Status.HARNESS_FAULT if faults else Status.GRADED,
            exercises=tuple(done),
            seconds=round(time.monotonic() - began, 3),
        )

    def _without_run(
        self, base: Record, wanted: Sequence[Exercise], found: Mapping[str, Answer | Problem]
    ) -> Record | None:
        """Return the record of a file that consists of the course's own solutions, None for other files."""
        known: dict[str, Answer | Problem] = {}
        for notebook in dict.fromkeys(exercise.notebook for exercise in wanted):
            known |= self.references.answers(notebook)
        own = {name: each.source for name, each in known.items() if isinstance(each, Answer)}
        record = replace(
            base,
            status=Status.GRADED,
            exercises=tuple(
                record_of(
                    exercise, Outcome.NOT_ATTEMPTED.value, message=NOT_RUN, answer=each.source
                )
                for exercise in wanted
                if isinstance(each := found[exercise.name], Answer)
            ),
        )
        complete = len(record.exercises) == len(wanted)
        return record if complete and all(is_own(x, own) for x in by_notebook(record)) else None

    # --- one exercise -----------------------------------------------------------------------------

    def _begin(
        self, exercise: Exercise, found: Answer | Problem, told: Callable[[str], None]
    ) -> _Try:
        """Try the visible cases of an exercise, unless it is known what comes of them."""
        told(exercise.name)
        if isinstance(found, Problem):
            visible = written_down(grade(exercise, found, cell_number), exercise, False, "none")
            return _Try(exercise, known=joined(exercise, found, visible, None))
        answer, cells = marked(found)
        parts = exercise, answer, self.secret, self.versions
        # A key covers answer, cells, secret, checks, engine and level: if all are equal, so is the result.
        begun = _Try(exercise, answer, cells, key_of(*parts), program_key(*parts))
        if (kept := self.cache.get(begun.key)) is not None:
            return replace(begun, known=replace(kept, cached=True))
        if begun.program and (kept := self.cache.get(begun.program)) is not None:
            flags = bypasses.flags(exercise, answer.source)  # these look at comments, too
            kept = replace(kept, cached=True, key=begun.key, answer=answer.source, flags=flags)
            return replace(begun, known=kept)
        if (kept := self.cache.get_visible(begun.key)) is not None:
            return replace(begun, visible=kept)
        began = time.monotonic()
        if both := self._pass_all(exercise, answer):
            seconds = time.monotonic() - began
            return replace(begun, visible=both[0].record, hidden=both[1], seconds=seconds)
        judged = self._check(exercise, answer, VISIBLE_SECRET)
        visible, seconds = judged.record, time.monotonic() - began
        is_cut = self._time.is_used_up
        if not (is_cut or self._is_cheap or visible.was_too_slow):
            self.cache.put_visible(begun.key, visible)
        return replace(begun, visible=visible, seconds=seconds, is_cut=is_cut, is_own=judged.is_own)

    def _finish(self, begun: _Try) -> ExerciseRecord:
        """Try the hidden cases; keep the record, unless another time may give another one."""
        if begun.known is not None:
            return named(begun.known, begun.cells)
        began = time.monotonic() - begun.seconds
        record = self._tried(begun)
        record = replace(record, seconds=round(time.monotonic() - began, 3))
        is_cut = begun.is_cut or self._time.is_used_up
        # A result that the machine or the clock may have caused is not kept: the next run tries again.
        if record.outcome != FAULT and not is_cut and not record.was_too_slow:
            record = replace(record, key=begun.key)
            self.cache.put(begun.key, record)
            # Flags and pictures are for a person to look at: of each answer its own.
            if record.passed and begun.program and not (record.flags or record.picture):
                self.cache.put(begun.program, record)
        return named(record, begun.cells)

    def _tried(self, begun: _Try) -> ExerciseRecord:
        exercise, answer, visible = begun.exercise, begun.answer, begun.visible
        assert answer is not None and visible is not None
        hopeless = visible.outcome in _SUSPICIOUS and not any(c.credit for c in visible.cases)
        # else it would only fail once more, and take as long
        judged = begun.hidden
        if judged is None and not hopeless:
            judged = self._check(exercise, answer, self.secret)
        hidden = judged.record if judged is not None else None
        outcomes = visible.outcomes | (hidden.outcomes if hidden is not None else set())
        unsure = outcomes & {FAULT, NOT_JUDGED}
        if unsure and self.references.lacks(exercise, (VISIBLE_SECRET, self.secret)):
            return fault_record(exercise)
        # What would fail so on any machine is asked about once: the check itself may not work here.
        now = not begun.is_own or (judged is not None and not judged.is_own)
        if (unsure or outcomes & _SUSPICIOUS) and not self.references.works(exercise, now):
            return fault_record(exercise)
        if unsure:  # only what this answer has sent could not be judged: it is wrong
            is_visible = visible.outcome == NOT_JUDGED
            where = visible.message if is_visible else "So it was in a hidden case."
            wrong = replace(
                visible, outcome=Outcome.WRONG.value, points=0.0, message=f"{UNJUDGED} {where}"
            )
            return replace(joined(exercise, answer, wrong, hidden), points=0.0)
        return joined(exercise, answer, visible, hidden)

    def _pass_all(self, exercise: Exercise, answer: Answer) -> list[Judged]:
        """Return what came of the visible and of the hidden cases if they pass in the same worlds."""
        # a picture shows what ranks did, and they held the inputs of hidden cases
        if not self._is_cheap or self.pictures == "all" or self._time.is_used_up:
            return []
        began = time.monotonic()
        with self.plan.turns.with_others():
            self._time.forgive(began)
            try:
                judge = self._open(exercise, self.secret, fresh=True)
            except (LaunchError, ServerGone):  # said when it is tried again
                self._drop()
                return []
            judge.sandbox.end_after(*self._time.left)
            both = judge.pass_all(
                exercise, answer, [VISIBLE_SECRET, self.secret], self._time.left[0]
            )
        if judge.gone or not both:
            self._drop()
        return both

    def _check(self, exercise: Exercise, answer: Answer, secret: str) -> Judged:
        """Try an answer on one set of cases.

        Who fails has failed in a sandbox in which nothing else of the submission had run; and twice, where
        something around it may have been the cause.
        """
        judged, was_fresh = self._try(exercise, answer, secret)
        if not judged.record.passed and not was_fresh:
            judged, _ = self._try(exercise, answer, secret, fresh=True)
        if judged.record.outcomes & _SHAKY and not judged.is_own:
            began = time.monotonic()
            minutes = plural(math.ceil(max(0.0, self._time.left[0]) / 60), "more minute")
            self.say(f"{self._learner}: {exercise.name} is tried again alone, up to {minutes}")
            with self.plan.turns.alone() as is_alone:
                self._time.forgive(began)
                settled = _settled(exercise, judged.record)
                again, _ = self._try(exercise, answer, secret, fresh=True, settled=settled)
            judged = Judged(_with_again(judged.record, again.record), again.is_own)
            # still nothing but the clock against it
            if judged.record.outcomes & _SHAKY and not judged.is_own and not is_alone:
                slow = replace(judged.record, outcome=Outcome.TOO_SLOW.value)
                judged = replace(judged, record=slow)
        if not judged.record.was_too_slow:
            return judged
        return replace(judged, record=replace(judged.record, flags=judged.record.flags or (SLOW,)))

    def _try(
        self,
        exercise: Exercise,
        answer: Answer,
        secret: str,
        fresh: bool = False,
        settled: Sequence[int] = (),
    ) -> tuple[Judged, bool]:
        """Try an answer once; tell whether nothing had run in the sandbox before."""
        for _ in range(_LOST_AGAIN):
            if self._time.is_used_up:
                message = (
                    "It has used up its share of the time that a submission may take: all exercises and sets "
                    f"of cases together {self._time.wall_s:,.0f} s, or {self._time.cpu_s:,.0f} s of "
                    "processor time, and one of them half of what is left."
                )
                return Judged(record_of(exercise, Outcome.TIMED_OUT.value, message=message)), True
            began = time.monotonic()
            with self.plan.turns.with_others():
                self._time.forgive(began)
                try:
                    judge = self._open(exercise, secret, fresh)
                except (LaunchError, ServerGone) as error:
                    self._drop()
                    crashed, message = Outcome.CRASHED.value, str(error)[:200]
                    return Judged(record_of(exercise, crashed, message=message)), True
                sandbox, was_fresh = judge.sandbox, not judge.seen
                sandbox.end_after(*self._time.left)
                judged = judge.judge(exercise, answer, secret, self._time.left[0], settled=settled)
            found, is_own = judged.record, judged.is_own
            if sandbox.found:
                outcome = Outcome.TIMED_OUT if sandbox.is_out_of_time else Outcome.OUT_OF_MEMORY
                message = f"{sandbox.found}."
                found, is_own = replace(found, outcome=outcome.value, message=message), False
            if count := sandbox.sweep():
                found = replace(found, flags=found.flags or (LEFT.format(count=count),))
            lost = sandbox.lost
            # A server ends what it can see; where an answer has hung or crashed, something may be left.
            failed = not found.passed if self._is_cheap else found.outcomes & _SUSPICIOUS
            if judge.gone or not found.cases or failed:
                self._drop()
            if not lost:
                break
        return Judged(found, is_own), was_fresh

    @property
    def _is_cheap(self) -> bool:
        """Whether a new sandbox takes milliseconds, and leaves nothing behind."""
        return self.plan.level == "bubblewrap"

    def _open(self, exercise: Exercise, secret: str, fresh: bool) -> Judge:
        """Return a judge with its sandbox: for visible cases one that has seen no hidden ones."""
        if (judge := self._judge) is not None and judge.seen:
            has_seen_hidden = judge.seen != {VISIBLE_SECRET}
            if fresh or (has_seen_hidden and secret == VISIBLE_SECRET):
                self._drop()
        began = time.monotonic()
        if self.references.prepare(exercise, (VISIBLE_SECRET, self.secret)):
            self._drop()  # the judge is a fork, and must know what is right
            self._time.forgive(began)
        if self._judge is None:
            late = exercise.notebook >= "09"
            self._judge = Judge(self.plan, self.slot, late, self.pictures, self._matches)
        return self._judge

    def _drop(self) -> None:
        if self._judge is not None:
            self._judge.close()
            self._time.spend(self._judge.sandbox.cpu_s)
            self._judge = None


def _settled(exercise: Exercise, record: ExerciseRecord) -> list[int]:
    """Return the places of the cases that need not be tried again: no other answer can have harmed them."""
    shaky = [case.outcome in _SHAKY for case in record.cases]
    # All questions of a judgement together have points; and it may not be a case that has failed.
    if exercise.kind is Kind.JUDGEMENT or not any(shaky):
        return []
    return [k for k, is_shaky in enumerate(shaky) if not is_shaky]


def _with_again(first: ExerciseRecord, again: ExerciseRecord) -> ExerciseRecord:
    """Put what came of the cases that were tried again in the places of those, which had no points."""
    if not again.cases or not any(case.outcome in _SHAKY for case in first.cases):
        return again if again.points >= first.points else first
    new = iter(again.cases)
    cases = [next(new, case) if case.outcome in _SHAKY else case for case in first.cases]
    cases += new  # an answer that crashed was not tried on the cases that follow
    worst = next((case for case in cases if case.outcome != Outcome.PASSED.value), None)
    if worst is not None and any(worst is case for case in first.cases):
        shown = replace(first, outcome=worst.outcome, message="")
    else:
        shown = again  # its message may say more than its cases: that memory was used up
    if cases[0].hidden:
        cases = [replace(case, label=hidden_label(k)) for k, case in enumerate(cases, 1)]
    points, flags = first.points + again.points, first.flags or again.flags
    return replace(shown, points=points, cases=tuple(cases), flags=flags)


def joined(
    exercise: Exercise,
    found: Answer | Problem,
    visible: ExerciseRecord,
    hidden: ExerciseRecord | None,
) -> ExerciseRecord:
    """Put what came of the visible and of the hidden cases (None: not tried) into one record."""
    both = [visible] if hidden is None else [visible, hidden]
    worst = next((each for each in both if not each.passed), both[-1])
    source = found.source if isinstance(found, Answer) else ""
    flags = [*bypasses.flags(exercise, source), *(flag for each in both for flag in each.flags)]
    if isinstance(found, Problem) and found.kind == "newer_syntax":
        flags.append("written with a newer Python than the grader's: grade it with that version")
    return replace(
        visible,
        outcome=worst.outcome,
        # an answer that fails a visible case does not have all points, even where no hidden one finds it
        points=round(min(each.points for each in both), 4) if hidden is not None else 0.0,
        cases=tuple(case for each in both for case in each.cases),
        flags=tuple(dict.fromkeys(flags)),
        reported=exercise.reported,
        answer=source,
    )


def fault_record(exercise: Exercise) -> ExerciseRecord:
    """Say that an exercise could not be graded here: it counts for nothing, for or against."""
    return record_of(
        exercise,
        FAULT,
        out_of=0.0,
        message="This machine could not grade it: the reference solution fails here as well.",
        flags=("harness fault: grade this exercise again, or elsewhere",),
    )
