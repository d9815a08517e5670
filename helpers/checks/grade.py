"""Try one answer on the cases of its exercise: what `check` and every grader call.

    Exercise.draw -> cases -- many in a world --> passed
                                  |
                                  v what did not pass, or left something behind
                               one in a world of its own --> judged, and told

Cases of one world size follow each other in one world, so that dozens cost what a few launches do. What
passes there passes: its values are right, its rules hold, and nothing of it is left for the next case.
Everything else is tried again alone, the smallest first, and only that run is judged and told. Where one
case ends and the next begins is told by the rank itself, which an answer can reach into. So every recorded
call must belong to some case, and where one breaks a rule, those that pass beside it are tried alone, too:
there all that was recorded is the case's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

import torch

from helpers.answers.build import Answer, Problem
from helpers.answers.text import defined_in
from helpers.checks.case import Case, Measured
from helpers.checks.drive import FILE, drive_cases
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.judge import Tried, Unjudged, judge, label_of, moved
from helpers.checks.kinds import Kind
from helpers.checks.nonsense import LOWER, has_wide
from helpers.checks.registry import exercises
from helpers.checks.result import CaseVerdict, CheckResult, Outcome
from helpers.checks.script_runs import run_of_script
from helpers.checks.stopwatch import Replies
from helpers.ranks.cells import place_of
from helpers.ranks.connection import Connection
from helpers.ranks.display import Watched
from helpers.ranks.failures import LaunchError
from helpers.ranks.launcher import run_on_ranks
from helpers.ranks.run import Run
from helpers.trace.events import Place, Trace

NameCell = Callable[[int], str]
"""From the index of a cell to what its reader calls it: "cell 7", "cell [12]"."""

_STOP_AFTER = frozenset(
    {Outcome.DEADLOCKED, Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.NOT_ATTEMPTED}
)
"""Outcomes after which the other cases would only repeat the message, and cost a second each."""
_MOST_ALONE = 8
"""Cases that are tried again in worlds of their own: after so many that went wrong alike, others do too."""
_TOGETHER_S = 4.0
"""Processor time of a world with many cases, beyond which each is tried alone, with its own budget."""
_MOST_EVENTS = 5_000
"""Calls and spans of each rank in one world: they cost time to read, and no answer makes a tenth of it."""
_MOST_PARTS = 3
"""Answers to other exercises that are tried because one that calls them failed."""


class CheckFault(Exception):
    """The exercise's own functions failed. unjudged: over what, in words, where it came from the answer.

    is_odd: such a failure as a value of an unexpected kind provokes; else it is taken for the check's fault.
    """

    def __init__(self, said: str, unjudged: str = "", is_odd: bool = False) -> None:
        super().__init__(said)
        self.unjudged, self.is_odd = unjudged, is_odd


def grade(
    exercise: Exercise,
    found: Answer | Problem,
    name_cell: NameCell,
    secret: str = VISIBLE_SECRET,
    *,
    every_case: bool = True,
    connection: Connection | None = None,
    watched: bool = False,
) -> CheckResult:
    """Try an answer, or say why there is none. Never raises on account of the answer.

    every_case: go on after a case that failed, so that the points are right. Without it the verdict
    and its advice are the same, and come sooner. connection: the rank server that runs it, by default this
    process's own. watched: see what tensors hold in each case that is tried alone, as what fails is.
    """
    if isinstance(found, Problem):
        outcome = Outcome.NOT_ATTEMPTED if found.kind == "not_attempted" else Outcome.UNREADABLE
        return _result(exercise, found, outcome, message=found.message)
    with _one_thread():
        result = _tried(exercise, found, name_cell, secret, every_case, connection, watched)
        if result.passed or result.outcome is Outcome.FAULT or secret != VISIBLE_SECRET:
            return result
        wrong = _wrong_parts(exercise, found, name_cell, connection)
        return replace(result, notes=(*result.notes, *wrong))


def _wrong_parts(
    exercise: Exercise, found: Answer, name_cell: NameCell, connection: Connection | None
) -> list[str]:
    """Say which answers to other exercises, of those that this one calls, are wrong themselves."""
    said = []
    others = [name for name in defined_in(found) if name in exercises() and name != exercise.name]
    for name in others[:_MOST_PARTS]:
        part = exercises()[name]
        own = replace(found, name=name)
        if not _tried(part, own, name_cell, VISIBLE_SECRET, False, connection).passed:
            said.append(
                f"`{name}` ({part.number}), which this answer calls, does not pass its own check: "
                "begin there."
            )
    return said


@contextmanager
def _one_thread() -> Iterator[None]:
    """Draw and judge in one thread: on a busy machine torch's threads make small sums ten times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _tried(
    exercise: Exercise,
    found: Answer,
    name_cell: NameCell,
    secret: str,
    every_case: bool,
    connection: Connection | None,
    watched: bool = False,
) -> CheckResult:
    trial = _Trial(exercise, found, name_cell, connection, watched)
    cases = exercise.draw(secret)
    verdicts: list[CaseVerdict] = []
    drawn = cases[:-1] if exercise.last is not None else cases
    groups = [list(group) for _, group in groupby(drawn, key=lambda case: case.world_size)]
    try:
        for group, following in zip_longest(groups, groups[1:], fillvalue=()):
            verdicts += trial.group(group, following, every_case)
            if trial.ended or not (every_case or all(v.passed for v in verdicts)):
                break
        if all(verdict.passed for verdict in verdicts):
            verdicts += trial.group(cases[len(drawn) :], (), every_case)
    except CheckFault as fault:
        return _not_judged(exercise, found, fault)
    except LaunchError as error:
        return _result(exercise, found, Outcome.CRASHED, message=str(error))
    result = _summed(exercise, found, tuple(verdicts), len(cases))
    if exercise.kind is Kind.LOCAL and secret == VISIBLE_SECRET:
        # up to the first that failed there is a verdict for each case
        failed = next((k for k, verdict in enumerate(verdicts) if not verdict.passed), None)
        return replace(result, given=() if failed is None else tuple(cases[failed].given[0]))
    return result


_Laps = Sequence[Mapping[tuple[int, ...], Sequence[float]]]
_Together = dict[int, tuple[Tried, CaseVerdict]]
"""Place of a case among those that were tried in one world -> what came of it."""


@dataclass
class _Trial:
    """One answer on its way through the cases."""

    exercise: Exercise
    answer: Answer
    name_cell: NameCell
    connection: Connection | None
    watched: bool = False
    ended: bool = False
    """An outcome came that the other cases would only repeat."""
    _alone: int = field(default=0, init=False)
    _flooded: bool = field(default=False, init=False)
    _asked: bool = field(default=False, init=False)
    _known: dict[int, tuple[Sequence[Case], _Together]] = field(default_factory=dict, init=False)

    def group(
        self, cases: Sequence[Case], following: Sequence[Case], every_case: bool
    ) -> list[CaseVerdict]:
        """Try cases of one world size: together, then alone what did not pass.

        following: cases of another size; what is advised must be true of those that go wrong there, too.
        """
        together = self._together(cases)
        if self._flooded:
            return [self._flood(cases[0])]
        wrong = _wrong(together)
        if wrong:
            wrong += _wrong(self._together(following))
        # what breaks a rule here may belong to another case than the rank says
        doubted = any(verdict.broken for _, verdict in together.values())
        verdicts: list[CaseVerdict] = []
        for index, case in enumerate(cases):
            known = together.get(index)
            passes = known is not None and known[1].passed
            if known is not None and passes and not doubted:
                verdicts.append(known[1])
                continue
            if known is not None and not passes and self._alone >= _MOST_ALONE:
                verdicts.append(known[1])
                continue
            self._alone += not passes
            run, laps = self._run([case], index)
            if self._flooded:
                return [*verdicts, self._flood(case)]
            tried = self._alone_in_its_world(case, run, laps)
            verdict = self._judge(tried, wrong)
            # Something else may have run at that moment. (A run that used up its wall time is not tried again
            # here: it has taken minutes.)
            if verdict.outcome is Outcome.TOO_SLOW and tried.run.failure is None:
                tried = self._alone_in_its_world(case, *self._run([case], index))
                verdict = self._judge(tried, wrong)
            if verdict.outcome is Outcome.WRONG and not verdict.advice:
                verdict = replace(verdict, advice=self._moves(case, index, tried))
            verdicts.append(verdict)
            slow = verdict.outcome is Outcome.TOO_SLOW and tried.run.failure is not None
            self.ended = slow or verdict.outcome in _STOP_AFTER
            if self.ended or not (every_case or verdict.passed):
                break
        return verdicts

    def _flood(self, case: Case) -> CaseVerdict:
        self.ended = True
        label, most = label_of(self.exercise, case), f"{_MOST_EVENTS:,}"
        message = f"More than {most} calls of a rank were recorded; no answer needs so many."
        return CaseVerdict(label, Outcome.FLOODED, message=message)

    def _together(self, cases: Sequence[Case]) -> _Together:
        """Try cases in one world; give what is known of each: nothing, where one of them has ended it."""
        if id(cases) in self._known:
            return self._known[id(cases)][1]
        together = self._all_in_one(cases)
        self._known[id(cases)] = cases, together
        return together

    def _all_in_one(self, cases: Sequence[Case]) -> _Together:
        plain = [i for i, case in enumerate(cases) if case.init and case.env is None]
        if not self.exercise.is_together or len(plain) < 2:
            return {}
        chosen = [cases[i] for i in plain]
        run, laps = self._run(chosen)
        if not run.ok or not _all_belong(run, len(chosen)):
            return {}
        parts = _apart(chosen, run, laps, self.exercise.keeps_input)
        return {
            i: (tried, replace(self._judge(tried), world=run))
            for i, tried in zip(plain, parts, strict=True)
            if _is_clean(tried.run.trace)
        }

    def _alone_in_its_world(self, case: Case, run: Run, laps: _Laps) -> Tried:
        if (
            self.exercise.kind is Kind.SCRIPT
        ):  # its own processes' values and errors are what counts
            value = _told(run.values[0], 0, 1).returned if run.ok else None
            run = replace(run, values=[value])
            return Tried(case, run_of_script(case.world_size, case.seconds, run, self._place))
        if not run.ok:
            return Tried(case, run)
        return _apart([case], run, laps, self.exercise.keeps_input)[0]

    def _judge(self, tried: Tried, others: Sequence[Tried] = ()) -> CaseVerdict:
        try:
            return judge(self.exercise, tried, others)
        except Unjudged as error:
            said = f"In the case {label_of(self.exercise, tried.case)}, {error.came}"
            raise CheckFault(f"{said} ({error})", f"{said}.", error.is_odd) from error
        except Exception as error:
            said = f"{type(error).__name__}: {str(error)[:200]}"
            raise CheckFault(f"case {tried.case.label}: {said}") from error

    def _moves(self, case: Case, index: int, tried: Tried) -> str:
        """Say so where wrong values come of what may not be read yet, as a second run shows."""
        if self._asked or not self.exercise.kind.is_hard or not has_wide(tried.run.values):
            return ""
        self._asked = True  # of the first case that fails: it is the one that is shown
        again = self._alone_in_its_world(case, *self._run([case], index, LOWER))
        return moved(tried, again) if again.run.ok else ""

    def _run(self, cases: Sequence[Case], first: int = 0, lower: int = 0) -> tuple[Run, _Laps]:
        """Run cases one after the other in one world; give also the laps that were told of each."""
        exercise, script = self.exercise, self.exercise.kind is Kind.SCRIPT
        size = 1 if script else cases[0].world_size
        alone = exercise.kind.is_alone
        replies = Replies([case.laps and case.laps() for case in cases])
        late = [(first + k) % (size + 1) for k in range(len(cases))]
        together = len(cases) > 1
        run = run_on_ranks(
            drive_cases,
            size,
            args=(
                self.answer.source,
                self.answer.name,
                exercise.kind,
                exercise.programme,
                [rank if rank < size else None for rank in late],
                lower,
            ),
            per_rank=[([case.given[rank] for case in cases],) for rank in range(size)],
            env=cases[0].env,
            init=cases[0].init and not alone,
            timeout=_TOGETHER_S if together else cases[0].seconds,
            name_place=self._place,
            reply=replies if exercise.kind is Kind.MEASUREMENT else None,
            connection=self.connection,
            display=Watched() if self.watched and not together else None,
        )
        self._flooded = len(run.trace) > _MOST_EVENTS * size
        return run, replies.laps

    def _place(self, file: str, line: int, function: str) -> Place:
        at = self.answer.place(line) if file == FILE else None
        if at is None:
            return place_of(file, line, function)
        lines = self.answer.source.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return Place(file, at[1], function, self.name_cell(at[0]), text)


def _wrong(together: _Together) -> list[Tried]:
    return [tried for tried, verdict in together.values() if not verdict.passed]


def _apart(cases: Sequence[Case], run: Run, laps: _Laps, keeps: bool) -> list[Tried]:
    """Cut what came of a world into its cases. A rank that lies about them costs its own answer."""
    parts = []
    alone = len(cases) == 1
    for k, case in enumerate(cases):
        told = [_told(value, k, len(cases)) for value in run.values]
        # who is alone has made all calls that there are, whatever it says
        trace = run.trace if alone else run.trace.between([(t.first, t.last) for t in told])
        values = [part.returned for part in told]
        if case.laps is not None:
            values = [Measured(found, laps[k]) for found in values]
        part = replace(run, values=values, trace=trace, traffic=run.traffic if alone else None)
        parts.append(Tried(case, part, [part.changed for part in told] if keeps else ()))
    return parts


class _Told(NamedTuple):
    """What a rank tells of one case; first, last: its calls' numbers, as `drive_cases` gives them."""

    returned: Any = None
    changed: Sequence[str] = ()
    first: int = 0
    last: int = 0


def _told(value: Any, k: int, count: int) -> _Told:
    """Read what a rank told of case k; nothing, where it is not what `drive_cases` gives."""
    if isinstance(value, list) and len(value) == count:
        part = value[k]
        if isinstance(part, list) and len(part) == 4 and isinstance(part[1], list):
            returned, changed, first, last = part
            if type(first) is int and type(last) is int:
                return _Told(returned, [str(name)[:80] for name in changed[:20]], first, last)
    return _Told()


def _all_belong(run: Run, count: int) -> bool:
    """Tell whether every recorded call of every rank belongs to one of the cases that it tells of."""
    ends = []
    for value in run.values:
        end = 0
        for told in (_told(value, k, count) for k in range(count)):
            if told.first != end or told.last < end:
                return False
            end = told.last
        ends.append(end)
    return all(event.seq < ends[event.rank] for event in run.trace)


def _is_clean(trace: Trace) -> bool:
    """Tell whether a case left nothing for the next one: all calls ended, all messages were taken."""
    if any(event.end_ns is None for event in trace.calls):
        return False
    if any(message.recv is None for message in trace.messages()):
        return False
    sent = sum(event.op == "send" for event in trace)
    received = sum(event.op == "recv" for event in trace)
    return sent == received and all(meeting.complete for meeting in trace.meetings())


def _summed(
    exercise: Exercise, found: Answer, verdicts: tuple[CaseVerdict, ...], count: int
) -> CheckResult:
    credit = sum(verdict.credit for verdict in verdicts)
    if exercise.kind is Kind.JUDGEMENT and credit < count:
        credit = 0.0  # some of the answers to a few questions can be guessed
    failed: Iterator[CaseVerdict] = (verdict for verdict in verdicts if not verdict.passed)
    worst = next(failed, None)
    return replace(
        _result(exercise, found, worst.outcome if worst else Outcome.PASSED),
        cases=verdicts,
        points=exercise.points * credit / count if count else 0.0,
    )


def _not_judged(exercise: Exercise, found: Answer, fault: CheckFault) -> CheckResult:
    if fault.is_odd:
        message = (
            f"What came back could not be judged. {fault}. What does the task ask for? If for this, the "
            "check is at fault, not your answer: please report it."
        )
        result = _result(exercise, found, Outcome.WRONG, message=message)
    else:
        message = f"This check is at fault, not your answer. Please report it: {fault}"
        result = _result(exercise, found, Outcome.FAULT, message=message)
    return replace(result, unjudged=fault.unjudged)


def _result(
    exercise: Exercise, found: Answer | Problem, outcome: Outcome, message: str = ""
) -> CheckResult:
    return CheckResult(
        exercise.name,
        exercise.heading,
        outcome,
        message=message,
        out_of=exercise.points,
        notes=found.notes,
        rules=tuple(rule.text for rule in exercise.rules),
    )
