"""Try one answer on the cases of its exercise: what `check` and every grader call.

    Exercise.draw -> cases -- many in a world --> passed
                                  |
                                  v what did not pass, or left something behind
                               one in a world of its own --> judged, and told

Cases of one world size follow each other in one world, so that dozens cost what a few launches do. What
passes there passes: its values are right, its rules hold, and nothing of it is left for the next case.
Everything else is tried again alone, the smallest first, and only that run is judged and told. Where one
case ends and the next begins is reported by the rank itself, which an answer can reach into. So every
recorded call must belong to some case, and where one breaks a rule, the other cases of its world are tried
alone, too: there all that was recorded is the case's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby

import torch

from helpers.answers.build import Answer, Problem, defined_in
from helpers.answers.data import NO_ATTEMPT
from helpers.checks.answer_source import FILE
from helpers.checks.case import Case
from helpers.checks.draw import low_plan
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.explain import Matches, behave_alike, broken_rules, explain
from helpers.checks.fault import CheckFault
from helpers.checks.judge import Tried, Unjudged, judge, label_of
from helpers.checks.kinds import Kind
from helpers.checks.oracle import LOW_CASES, draw, fill
from helpers.checks.registry import exercises
from helpers.checks.result import CaseVerdict, CheckResult, Outcome
from helpers.checks.worlds import MOST_EVENTS, Flooded, Turn, Worlds, is_clean
from helpers.ranks.cells import place_of
from helpers.ranks.connection import Servers
from helpers.ranks.failures import LaunchError
from helpers.trace.events import Place

NameCell = Callable[[int], str]
"""From the index of a cell to what its reader calls it: "cell 7", "cell [12]"."""

# Outcomes after which the other cases would only repeat the message, and cost a second each.
_STOP_AFTER = frozenset(
    {Outcome.DEADLOCKED, Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.NOT_ATTEMPTED}
)
# Cases that went wrong together are tried again, each in a world of its own: after this many the others are
# believed, and sooner where these went wrong there as well. An answer that is right only in the first call of
# a process passes there, and is wrong all the same.
_MOST_ALONE, _ENOUGH_ALONE = 8, 4
# Of cases that fail, so many are drawn again with small numbers; so many others are drawn that are small
# altogether. If all pass, and at least the third number, it is the numbers that make the difference.
_TWINS, _ENOUGH_SMALL = 3, 3
# A pure function is called in no time, so more cases are drawn for it.
_LOW_CALLS = 60
# Answers to other exercises that are tried because one that calls them failed.
_MOST_PARTS = 3
MOVES = (
    "Until wait() has returned, the check fills the tensors that an irecv or an asynchronous call writes to "
    "with poison values, and new tensors of torch.empty, too. Your numbers change with those values: "
    "something was read before wait(), or nothing was ever received into it."
)
# Said of a case that fails, while it and others pass with small numbers.
SMALL_PASSES = (
    "With small whole numbers, of the same dtype and shape, this case passes. It is these numbers that your "
    "answer changes: they are large, tiny, or not whole."
)


def grade(
    exercise: Exercise,
    found: Answer | Problem,
    name_cell: NameCell,
    secret: str = VISIBLE_SECRET,
    *,
    every_case: bool = True,
    connection: Servers | None = None,
    watched: bool = False,
    matches: Matches | None = None,
    settled: Collection[int] = (),
) -> CheckResult:
    """Try an answer, or say why there is none. Never raises on account of the answer.

    every_case: continue after a case that failed, so that the points are right. Without it the outcome and
    the advice are the same, and come sooner. connection: the rank server that runs it, by default this
    process's own. watched: see what tensors hold in each case that is tried alone, as what fails is. settled:
    the places of cases that are not tried: the result has neither them nor their points.
    """
    if isinstance(found, Problem):
        outcome = Outcome.NOT_ATTEMPTED if found.kind in NO_ATTEMPT else Outcome.UNREADABLE
        return _result(exercise, found, outcome, message=found.message)
    visible = secret == VISIBLE_SECRET
    worlds = Worlds(exercise, [found.source], _places(found, name_cell), connection, watched)
    # of a hidden case nobody sees the advice
    is_read = matches is None and visible
    advice = {} if is_read else matches
    with one_thread():
        result = _tried(_Trial(worlds, every_case, advice, is_read), found, secret, settled)
        if result.passed or result.outcome is Outcome.FAULT or not visible:
            return result
        return replace(result, notes=(*result.notes, *_wrong_parts(worlds, found, result.outcome)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Draw and judge in one thread: on a busy machine torch's threads make small sums ten times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _places(answer: Answer, name_cell: NameCell) -> Callable[[str, int, str], Place]:
    """Return what names a line of an answer's source as a place in the learner's notebook."""

    def place(file: str, line: int, function: str) -> Place:
        at = answer.place(line) if file == FILE else None
        if at is None:
            return place_of(file, line, function)
        lines = answer.source.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return Place(file, at[1], function, name_cell(at[0]), text)

    return place


def _wrong_parts(worlds: Worlds, found: Answer, outcome: Outcome) -> list[str]:
    """Name the answers to other exercises that this one calls and that are wrong themselves.

    outcome: of this answer. If it was attempted, the check has lent it what is still a stub.
    """
    said = []
    own = worlds.exercise.name
    others = [name for name in defined_in(found) if name in exercises() and name != own]
    for name in others[:_MOST_PARTS]:
        part = exercises()[name]
        trial = _Trial(replace(worlds, exercise=part, watched=False), every_case=False)
        part_outcome = _tried(trial, replace(found, name=name), VISIBLE_SECRET).outcome
        is_lent = part_outcome is Outcome.NOT_ATTEMPTED and outcome is not part_outcome
        # a fault says nothing about the part: a grader has not run its reference yet
        if part_outcome not in {Outcome.PASSED, Outcome.FAULT} and not is_lent:
            said.append(
                f"`{name}` ({part.number}), which this answer calls, does not pass its own check: "
                "begin there."
            )
    return said


def _tried(trial: _Trial, found: Answer, secret: str, settled: Collection[int] = ()) -> CheckResult:
    exercise, own = trial.exercise, trial.worlds.connection is None
    try:
        cases = draw(exercise, secret, own_server=own)
    except CheckFault as fault:
        return _not_judged(exercise, found, fault)

    def small(case: Case) -> Case | None:
        """Return the same case with small whole numbers, if it has others."""
        if not has_hard_numbers(case):
            return None
        drawn = draw(exercise, secret, small=True, own_server=own)
        twin = next(two for one, two in zip(cases, drawn, strict=True) if one is case)
        # where a size depends on a number that was drawn, it is another case
        return twin if twin.label == case.label else None

    trial = replace(trial, small=small)
    groups, last = in_groups(exercise, cases)
    if settled:
        known = {id(cases[k]) for k in settled}
        groups, last = _without(known, groups), _without(known, last)
    try:
        verdicts = list(trial.verdicts(groups))
        if all(verdict.passed for verdict in verdicts):
            verdicts += trial.verdicts(last)
    except CheckFault as fault:
        return _not_judged(exercise, found, fault)
    except LaunchError as error:
        return _result(exercise, found, Outcome.CRASHED, message=str(error))
    result = summed(exercise, found, verdicts, len(cases))
    if exercise.kind is Kind.LOCAL and secret == VISIBLE_SECRET:
        failed = (verdict for verdict in verdicts if not verdict.passed)
        return replace(result, given=next((verdict.given for verdict in failed), ()))
    return result


def in_groups(
    exercise: Exercise, cases: Sequence[Case]
) -> tuple[list[list[Turn]], list[list[Turn]]]:
    """Return cases in groups of one world size; apart from them `Exercise.last`, where there is one."""
    first, last = (cases[:-1], cases[-1:]) if exercise.last is not None else (cases, ())
    by_size = groupby(first, key=lambda case: case.world_size)
    groups = [[Turn(case, number) for number, case in enumerate(group)] for _, group in by_size]
    return groups, [[Turn(case, 0)] for case in last]


def _without(known: Collection[int], groups: Sequence[Sequence[Turn]]) -> list[list[Turn]]:
    """Leave out cases by their id()."""
    left = [[turn for turn in group if id(turn.case) not in known] for group in groups]
    return [group for group in left if group]


@dataclass(frozen=True)
class _Trial:
    """How an answer's cases are tried.

    matches: of `explain`, which advises; None if no advice is needed. is_read: a learner reads the result, so
    it is worth a world to look for a smaller case to show. small: the same case with small whole numbers,
    None where there is none.
    """

    worlds: Worlds
    every_case: bool
    matches: Matches | None = None
    is_read: bool = False
    small: Callable[[Case], Case | None] = lambda case: None

    @property
    def exercise(self) -> Exercise:
        return self.worlds.exercise

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters for which a case has values."""
        names = _parameters(self.worlds.programs[0], self.exercise.name)
        kind = self.exercise.kind
        return names if kind.is_alone else names[2:] if kind is Kind.RANKS else ()

    def verdicts(self, groups: Sequence[Sequence[Turn]]) -> Iterator[CaseVerdict]:
        """Judge cases, each group of one world size: first all together, then alone what did not pass there.

        The first failing verdict is the one that is shown, so it alone gets the best advice. It is of the
        case that is easiest to read; the case in whose place it stands takes that one's.
        """

        @cache
        def together(k: int) -> _Together:
            return all_in_one(self.worlds, groups[k]) if k < len(groups) else {}

        alone, confirmed, failed, is_shown = 0, 0, 0, False
        known: dict[int, tuple[Tried, CaseVerdict]] = {}
        moved: dict[int, Turn] = {}
        for k, group in enumerate(groups):
            turn = group[0]
            try:
                seen = together(k)
                known |= seen
                if _seen(seen, passed=False) and not failed and self.matches is not None:
                    # Advice must be true of all cases that fail, and of none that passes: these worlds are
                    # needed anyway, or else that of the next size alone.
                    known |= self._later(together, k + 1, len(groups) if self.every_case else k + 2)
                wrong = _seen(known, passed=False)
                # what breaks a rule here may belong to another case than the rank says
                doubted = any(verdict.broken for _, verdict in seen.values())
                for turn in group:
                    turn = moved.get(id(turn.case), turn)
                    if not failed and self.matches is not None and _fails(known, turn):
                        easiest = _easiest(known, turn)
                        moved[id(easiest.case)], turn = turn, easiest
                    verdict = known[id(turn.case)][1] if id(turn.case) in known else None
                    passes = verdict is not None and verdict.passed
                    # of many that went wrong together it is enough to try some again
                    enough = alone >= _MOST_ALONE or confirmed >= _ENOUGH_ALONE
                    is_settled = not doubted if passes else enough
                    if verdict is None or not is_settled:
                        alone += not passes
                        if failed or self.matches is None:
                            _, verdict = self._alone(turn, wrong)
                        else:
                            verdict = self._to_be_shown(turn, known)
                        failed += not verdict.passed
                        confirmed += not (passes or verdict.passed)
                    if is_shown and verdict.outcome is Outcome.WRONG:
                        # Advice belongs to the case that is shown: of other cases it may be true alone.
                        verdict = replace(verdict, advice="")
                    is_shown |= not verdict.passed
                    yield verdict
                    if verdict.outcome in _STOP_AFTER or _took_minutes(verdict):
                        return
                    if not (self.every_case or verdict.passed):
                        return
            except Flooded:
                yield _flood(self.exercise, turn.case)
                return

    def _later(self, together: Callable[[int], _Together], first: int, end: int) -> _Together:
        """Return what is known of the cases of later groups."""
        found: dict[int, tuple[Tried, CaseVerdict]] = {}
        for k in range(first, end):
            with suppress(Flooded):  # reported when it is that group's turn
                found |= together(k)
        return found

    def _alone(
        self, turn: Turn, wrong: Sequence[Tried], passed: Sequence[Tried] = ()
    ) -> tuple[Tried, CaseVerdict]:
        """Judge one case in a world of its own."""
        tried = self.worlds.alone(turn)
        verdict = judged(self.exercise, tried, wrong, passed, self.names)
        if verdict.outcome is Outcome.TOO_SLOW and not _took_minutes(verdict):
            # Something else may have run at that moment.
            tried = self.worlds.alone(turn)
            verdict = judged(self.exercise, tried, wrong, passed, self.names)
        return tried, verdict

    def _to_be_shown(self, turn: Turn, known: _Together) -> CaseVerdict:
        """Judge the case that is shown if it fails: if possible as a smaller one, with small numbers.

        known: what came of other cases, of which advice must be true as well.
        """
        own = known.get(id(turn.case))
        if own is None or own[1].passed:
            found = self._shown(turn, known)
            twin = self.small(turn.case)
            # what never ends would use up its time once more, with whatever numbers
            if found.passed or twin is None or found.outcome is Outcome.TIMED_OUT:
                return found
            easier = self._shown(replace(turn, case=twin), known)
            return found if easier.passed else easier
        smaller, note = self._smaller(turn, known)
        shown = None
        for each in smaller:
            found = self._shown(each, known)
            if not found.passed and (shown is None or found.advice):
                shown = found
            if shown is not None and (shown.advice or not has_wrong_values(shown)):
                break
        if shown is None:
            shown = self._shown(turn, known)
        if shown.outcome is Outcome.WRONG:
            shown = replace(shown, message=shown.message or note)
        return replace(shown, partial=own[1].partial)

    def _smaller(self, turn: Turn, known: _Together) -> tuple[list[Turn], str]:
        """Return cases that fail as one does and are easier to read, the easiest first; and what that says.

        All are tried in one world: some failing cases with small numbers, and some that are small altogether.
        """
        ranks, own = turn.case.world_size, known[id(turn.case)]
        alike = [
            Turn(tried.case, tried.number)
            for tried, verdict in known.values()
            if tried.case is not turn.case
            and tried.case.world_size == ranks
            and fail_alike(self.exercise, own, (tried, verdict))
        ]
        twin = self.small(turn.case)
        first = [] if twin is None else [replace(turn, case=twin)]
        turns = [*first]
        for each in alike:
            if len(turns) < _TWINS and (other := self.small(each.case)) is not None:
                turns.append(replace(each, case=other))
        came: _Together = {}
        # a case that fails by itself, as no drawn one does, is not worth more than the case at hand
        with suppress(CheckFault, Flooded):
            if self.is_read:
                count = _LOW_CALLS if self.exercise.kind is Kind.LOCAL else LOW_CASES
                draws = low_plan(ranks, count, f"low/{self.exercise.name}")
                low = [self.exercise.case(each) for each in draws]
                own_server = self.worlds.connection is None
                key = (VISIBLE_SECRET, str(ranks))
                filled = fill(self.exercise, key, low, own_server=own_server)
                turns += [Turn(case, k) for k, case in enumerate(filled)]
            came = all_in_one(self.worlds, turns)
        if not came:
            return first, ""
        tried = [each for each in turns if id(each.case) in came]
        failing = [each for each in tried if fail_alike(self.exercise, own, came[id(each.case)])]
        if first and len(tried) >= _ENOUGH_SMALL and all(came[id(t.case)][1].passed for t in tried):
            return [], SMALL_PASSES
        best = min(failing, key=lambda each: each.case.reading, default=turn)
        if best.case.reading > turn.case.reading:
            best = turn
        fallback = (
            [each for each in failing if each is not best and each is turns[0]] if first else []
        )
        return [best, *fallback], ""

    def _shown(self, turn: Turn, known: _Together) -> CaseVerdict:
        """Judge one case in a world of its own, with the best advice if it fails."""
        wrong = [each for each in _seen(known, passed=False) if each.case is not turn.case]
        passed = _seen(known, passed=True)
        tried, verdict = self._alone(turn, wrong, passed)
        if verdict.passed:
            return verdict
        if self.exercise.kind is Kind.LOCAL:
            verdict = replace(verdict, given=tuple(turn.case.given[0]))
        return self._advised(tried, verdict, wrong, passed)

    def _advised(
        self,
        shown: Tried,
        verdict: CaseVerdict,
        wrong: Sequence[Tried],
        passed: Sequence[Tried],
    ) -> CaseVerdict:
        """Add the best advice to the verdict that is shown: a mistake that was run, if one fits."""
        if self.matches is None:
            return verdict
        advice, title = verdict.advice, ""
        if has_wrong_values(verdict):  # a broken rule says it all
            found = explain(self.worlds, shown, verdict.outcome, wrong, passed, self.matches)
            if found is not None:
                advice, title = shown.case.say(found.words), found.title
        if verdict.outcome is Outcome.WRONG and not advice:
            advice = self._moves(shown)
        return replace(verdict, advice=advice, mistake=title)

    def _moves(self, tried: Tried) -> str:
        """Say so if the wrong values come from poison: other poison values give others, twice the same."""
        if not self.exercise.kind.is_hard:
            return ""
        turn = Turn(tried.case, tried.number)
        again = self.worlds.alone(turn, second=True)
        if not again.run.ok or behave_alike(self.exercise, tried, again):
            return ""
        # a program that is not the same from run to run reads something else than poison: the clock, say
        for seen, second in ((again, True), (tried, False)):
            if not behave_alike(self.exercise, seen, self.worlds.alone(turn, second=second)):
                return ""
        return MOVES


def _parameters(source: str, name: str) -> tuple[str, ...]:
    """Return the names of an answer's parameters; none, if it is not a function that has a fixed number."""
    found: tuple[str, ...] = ()
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        found = next(_named(ast.parse(source), name), ())
    return found


def _named(module: ast.Module, name: str) -> Iterator[tuple[str, ...]]:
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            given = statement.args
            named = [each.arg for each in (*given.posonlyargs, *given.args)]
            yield () if given.vararg or given.kwonlyargs else tuple(named)


def has_wrong_values(verdict: CaseVerdict) -> bool:
    """Whether more is wrong than how the ranks communicated."""
    return any(row.problem for row in verdict.rows) or bool(verdict.message)


def fail_alike(
    exercise: Exercise, one: tuple[Tried, CaseVerdict], other: tuple[Tried, CaseVerdict]
) -> bool:
    """Whether two cases fail in the same way: with values wrong, or not, and with the same broken rules."""
    return _way(exercise, *one) == _way(exercise, *other)


def _way(exercise: Exercise, tried: Tried, verdict: CaseVerdict) -> tuple[object, ...]:
    return verdict.outcome, has_wrong_values(verdict), broken_rules(exercise, tried)


def has_hard_numbers(case: Case) -> bool:
    """Whether a rank is given a tensor with numbers that are not whole, or of two digits and more."""
    tensors = (x for part in case.given for x in part if isinstance(x, torch.Tensor))
    numbers = (x.detach().to(torch.float64) for x in tensors if not x.is_complex())
    return any(bool(((x.abs() > 10) | (x != x.round())).any()) for x in numbers)


# id() of a case among those that were tried in one world -> what came of it.
_Together = Mapping[int, tuple[Tried, CaseVerdict]]


def all_in_one(worlds: Worlds, group: Sequence[Turn]) -> _Together:
    """Try cases in one world; return what is known of each: nothing, where one of them has ended it."""
    turns = [turn for turn in group if turn.may_share]
    if not worlds.exercise.is_together or len(turns) < 2:
        return {}
    shared = worlds.together(turns)
    if shared is None:
        return {}
    parts, world = shared
    return {
        id(tried.case): (tried, replace(judged(worlds.exercise, tried), world=world))
        for tried in parts
        if is_clean(tried.run.trace)
    }


def _seen(together: _Together, passed: bool) -> list[Tried]:
    return [tried for tried, verdict in together.values() if verdict.passed is passed]


def _fails(together: _Together, turn: Turn) -> bool:
    """Whether a case is known to fail."""
    return id(turn.case) in together and not together[id(turn.case)][1].passed


def _easiest(known: _Together, turn: Turn) -> Turn:
    """Return the case that is easiest to read, of those that fail with the same outcome as one does."""
    outcome = known[id(turn.case)][1].outcome

    def reading(each: tuple[Tried, CaseVerdict]) -> tuple[bool, object]:
        # a wrong value says more than a broken rule
        return not has_wrong_values(each[1]), each[0].case.reading

    alike = [each for each in known.values() if each[1].outcome is outcome]
    tried, _ = min(alike, key=reading)
    return Turn(tried.case, tried.number)


def judged(
    exercise: Exercise,
    tried: Tried,
    others: Sequence[Tried] = (),
    passed: Sequence[Tried] = (),
    names: Sequence[str] = (),
) -> CaseVerdict:
    """Judge what came of a case; raise CheckFault where the exercise's own functions fail over it."""
    try:
        return judge(exercise, tried, others, passed, names)
    except Unjudged as error:
        said = f"In the case {label_of(exercise, tried.case)}, {error.came}"
        raise CheckFault(f"{said} ({error})", f"{said}.", error.is_odd) from error
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:200]}"
        raise CheckFault(f"case {tried.case.label}: {said}") from error


def _took_minutes(verdict: CaseVerdict) -> bool:
    """Whether a run used up its wall time, so that trying it again would take minutes more."""
    run = verdict.run
    return verdict.outcome is Outcome.TOO_SLOW and run is not None and run.failure is not None


def _flood(exercise: Exercise, case: Case) -> CaseVerdict:
    message = f"More than {MOST_EVENTS:,} calls of a rank were recorded; no answer needs that many."
    return CaseVerdict(label_of(exercise, case), Outcome.FLOODED, message=message)


def summed(
    exercise: Exercise, found: Answer, verdicts: Sequence[CaseVerdict], count: int
) -> CheckResult:
    """Return the result that the verdicts of an answer's cases make. count: of all its cases."""
    failed: Iterator[CaseVerdict] = (verdict for verdict in verdicts if not verdict.passed)
    worst = next(failed, None)
    return replace(
        _result(exercise, found, worst.outcome if worst else Outcome.PASSED),
        cases=tuple(verdicts),
        # as it is written everywhere, so that no two places disagree in a second decimal
        points=round(exercise.points * _share(exercise, verdicts, count), 1) if count else 0.0,
    )


def _share(exercise: Exercise, verdicts: Sequence[CaseVerdict], count: int) -> float:
    """Return the share of the exercise's points that an answer gets."""
    share = sum(verdict.credit for verdict in verdicts) / count
    if exercise.kind is Kind.JUDGEMENT:
        # Some of the answers to a few questions can be guessed, so each wrong one costs much more than its
        # share: 1 of 24 costs a third of the points, and with 6 nothing is left.
        return max(0.0, 1 - 4 * (1 - share)) ** 2
    # Right values, got in a way that the task rules out: cases in which both ways are the same add nothing.
    missed = any(verdict.partial for verdict in verdicts)
    return min(share, 0.5) if missed else share


def _not_judged(exercise: Exercise, found: Answer, fault: CheckFault) -> CheckResult:
    if fault.is_odd:
        message = (
            f"We could not check your return value. {fault}. If this is what the task asks for, the bug is "
            "ours: please report it."
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
