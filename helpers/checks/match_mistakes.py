"""Find the known mistake that explains a wrong answer: the one that behaves like it in the same cases.

    the case shown, one more wrong, two that passed  --> every mistake --> those alike on all of them
    the cases of some other world sizes              --> those         --> those that fail in the same of them
    further cases, if several sentences are left     --> those         --> those alike on all of them
    newly drawn cases, if several are left even then --> those         --> one, or none

Mistakes run under the same conditions as the answer: the same cases and world size, the same late rank, the
same poison values in buffers. If two mistakes with different sentences cannot be distinguished, neither
sentence is shown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from typing import Any

from helpers.checks.case import Case, Measured
from helpers.checks.compare import same, vast_range
from helpers.checks.exercise import Exercise
from helpers.checks.judge import Execution, judge
from helpers.checks.kinds import Kind
from helpers.checks.known_outcomes import recognize
from helpers.checks.mistakes import KnownMistake, known_mistakes
from helpers.checks.named_parts import NamedParts
from helpers.checks.oracle import ADVICE_SECRET, Reference, draw
from helpers.checks.result import Outcome
from helpers.checks.worlds import Flooded, Turn, Worlds, is_clean
from helpers.ranks import wire
from helpers.ranks.failures import Deadlock, RankDied, RankFailed, RankTimeout
from helpers.ranks.run import Run

# The largest number of further cases of one world size, and of cases drawn to separate two mistakes.
_MOST_OTHERS = 4
# Parts of an error's text that differ from run to run: addresses, paths, ports, and the prefix, with a
# time, of lines that torch logs.
_PASSING_THINGS = re.compile(
    r"0x[0-9a-f]+|/[\w./-]+|\d+\.\d+\.\d+\.\d+|:\d+\b|\[rank\d+\]|\[[A-Z]\d{4} [^\]]*\]"
    # pybind's stack of a callback of a future: how deep it is depends on whether the future was done already
    r"|\n\nAt:\n[\s\S]*"
)


Matches = MutableMapping[str, str]
"""Digest of what an answer did -> title of the mistake that explains it, or "" if none does."""


def explain(
    answer: Worlds,
    shown: Execution,
    outcome: Outcome,
    wrong: Sequence[Execution],
    passed: Sequence[Execution],
    matches: Matches,
) -> KnownMistake | None:
    """Return the mistake that behaves like the answer, if there is one.

    shown: the case that the learner will see, and its outcome. wrong, passed: other cases in which the
    answer was wrong, or right. matches: earlier results, to which this one is added, so that each wrong
    behavior is looked up once per class.
    """
    exercise = answer.exercise
    if exercise.kind is Kind.SCRIPT:  # a script takes seconds
        return recognize(exercise, shown)
    known = [m for m in known_mistakes(exercise) if m.outcome is outcome]
    if not known:
        return None
    key = _digest(exercise, outcome, [shown, *wrong, *passed])
    if key not in matches:
        matches[key] = _match(answer, shown, known, wrong, passed)
    # by title, because it may have been found for another learner's answer
    return next((mistake for mistake in known if mistake.title == matches[key]), None)


def _digest(exercise: Exercise, outcome: Outcome, seen: Sequence[Execution]) -> str:
    """Return a digest of an answer's behavior in some cases.

    Two digests differ even if only one last digit differs.
    """
    found = hashlib.sha256(f"{exercise.name} {outcome.value}".encode())
    for each in seen:
        run = each.run
        found.update(f"{run.world_size} {each.number} {each.changed}".encode())
        found.update(f"{broken_rules(exercise, each)} {_reason(run)}".encode())
        for value in run.values:
            value = value.found if isinstance(value, Measured) else value
            for chunk in wire.encode(value):
                found.update(chunk)
    return found.hexdigest()


def _match(
    answer: Worlds,
    shown: Execution,
    known: Sequence[KnownMistake],
    wrong: Sequence[Execution],
    passed: Sequence[Execution],
) -> str:
    """Return the title of the mistake that behaves like the answer, or ""."""
    size = shown.case.world_size
    near = [each for each in wrong if each.case.world_size == size]
    # a mistake that is wrong in a case that the answer passes is a different one
    right = [each for each in passed if each.case.world_size == size]
    left = _alike(answer, known, [shown, *near[:1], *right[:1], *right[1:][-1:]])
    # Cases of a different size say more than further ones of the same size.
    others = _other_sizes(size, wrong, passed)
    for failing, passing in others:
        more = [*failing[1:], *passing] if _can_share(shown) else passing[:1]
        left = _alike(answer, left, failing[:1], more)
    if not others or len({mistake.words for mistake in left}) > 1:
        more = [*near[_MOST_OTHERS:], *right[1:-1]]
        left = _alike(answer, left, near[1:_MOST_OTHERS], more)
    if len({mistake.words for mistake in left}) > 1:
        left = _alike(answer, left, list(_drawn(answer, shown)))
    sentences = {mistake.words for mistake in left}
    return left[0].title if len(sentences) == 1 else ""


def _other_sizes(
    size: int, wrong: Sequence[Execution], passed: Sequence[Execution]
) -> list[tuple[list[Execution], list[Execution]]]:
    """Return the cases of at most two other world sizes: those that failed, and those that passed.

        The sizes are the smallest at which some cases failed, and the one at which most cases passed. A
    world costs 50 ms.
    """
    failing = _by_size(size, wrong)
    passing = _by_size(size, passed)
    chosen = sorted(failing)[:1]
    rest = sorted(set(passing) - set(chosen), key=lambda other: -len(passing[other]))
    return [(failing.get(k, []), passing.get(k, [])) for k in [*chosen, *rest[:1]]]


def _by_size(but: int, tries: Sequence[Execution]) -> dict[int, list[Execution]]:
    found: dict[int, list[Execution]] = {}
    for each in tries:
        if each.case.world_size != but:
            found.setdefault(each.case.world_size, []).append(each)
    return found


def _drawn(answer: Worlds, shown: Execution) -> Iterable[Execution]:
    """Draw further cases and run the answer on them."""
    sizes = {shown.case.world_size}
    # a separate secret, because the visible cases have not distinguished the mistakes
    own = answer.connection is None
    for case in draw(answer.exercise, ADVICE_SECRET, own_server=own):
        if case.world_size not in sizes and len(sizes) <= _MOST_OTHERS:
            sizes.add(case.world_size)
            yield answer.alone(Turn(case, 0))


def _alike(
    answer: Worlds,
    mistakes: Sequence[KnownMistake],
    cases: Sequence[Execution],
    more: Sequence[Execution] = (),
) -> list[KnownMistake]:
    """Return the mistakes that behave like the answer in all of these cases. One world runs for each size.

    more: cases of the same size in which the mistakes only have to pass or fail as the answer did.
    """
    left = list(mistakes)
    for _, group in groupby([*cases, *more], key=_world):
        seen = list(group)
        worlds = replace(answer, programs=[mistake.source for mistake in left], record_values=False)
        turns = [Turn(each.case, each.number) for each in seen]
        came = _run_or_recall(worlds, turns, together=_can_share(seen[0]))
        left = [
            mistake
            for mistake, tries in zip(left, came, strict=True)
            if len(tries) == len(seen)
            and all(
                _pass_alike(answer.exercise, each, execution)
                if any(each is other for other in more)
                else behave_alike(answer.exercise, each, execution)
                for each, execution in zip(seen, tries, strict=True)
            )
        ]
        if not left:
            break
    return left


def _world(execution: Execution) -> tuple[int, int]:
    """Return a key that is equal for cases which may share a world, and unique for a case that may not."""
    return execution.case.world_size, 0 if _can_share(execution) else id(execution.case)


def _can_share(execution: Execution) -> bool:
    # if the answer failed here, a program that fails alike would end the world for all others
    return Turn(execution.case, 0).may_share and execution.run.failure is None


def _pass_alike(exercise: Exercise, one: Execution, other: Execution) -> bool:
    return judge(exercise, one).passed is judge(exercise, other).passed


# Maps a program and a case to the run while `keep_runs` is active; otherwise None.
_kept: dict[bytes, Execution] | None = None
_MOST_KEPT = 3000


@contextmanager
def keep_runs(kept: dict[bytes, Execution]) -> Iterator[None]:
    """Keep the runs of known mistakes, so that a proof, which compares all, runs none twice on a case.

    A check of a learner's answer keeps nothing, because a run contains all that its ranks sent.
    """
    global _kept
    before, _kept = _kept, kept
    try:
        yield
    finally:
        _kept = before
        if len(kept) > _MOST_KEPT:
            kept.clear()


def _run_or_recall(worlds: Worlds, turns: Sequence[Turn], together: bool) -> list[list[Execution]]:
    """Run all programs of `worlds` as `_run` does, except those whose runs on these turns are kept."""
    if _kept is None:
        return _run(worlds, range(len(worlds.programs)), turns, together)
    kept = _kept
    marks = [_mark(worlds.exercise, turn) for turn in turns]
    keys = [[_digest_of(mark, source.encode()) for mark in marks] for source in worlds.programs]
    lacking = [k for k, own in enumerate(keys) if not all(key in kept for key in own)]
    fresh = replace(worlds, programs=[worlds.programs[k] for k in lacking])
    came = dict(zip(lacking, _run(fresh, range(len(lacking)), turns, together), strict=True))
    for k, tries in came.items():
        if len(tries) == len(turns):
            kept.update(zip(keys[k], tries, strict=True))
    return [
        came[k]
        if k in came
        else [replace(kept[key], case=turn.case) for key, turn in zip(own, turns, strict=True)]
        for k, own in enumerate(keys)
    ]


def _mark(exercise: Exercise, turn: Turn) -> bytes:
    """Return a key for a case's content: cases are drawn again for each answer, as new objects."""
    case = turn.case
    told = f"{exercise.name} {exercise.case} {exercise.driver} {exercise.kind} {turn.number} {case.label}"
    given = [bytes(chunk) for part in case.given for chunk in wire.encode(list(part))]
    return _digest_of(told.encode(), str(case.env).encode(), *given)


def _digest_of(*parts: bytes) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.digest()


def _run(
    worlds: Worlds, programs: Sequence[int], turns: Sequence[Turn], together: bool
) -> list[list[Execution]]:
    """Run each program on each turn; return the runs, up to the failure if a program fails.

    together: run them in one world as long as each leaves it clean. If one does not, run half of them in
    each of two worlds, and so on. Otherwise each program has its own worlds.
    """
    if together and len(programs) * len(turns) > 1:
        all_turns = [replace(turn, program=program) for program in programs for turn in turns]
        with suppress(Flooded):
            shared = worlds.together(all_turns)
            if shared is not None:
                tries = shared[0]
                # What the last program leaves behind affects no other program.
                if all(is_clean(execution.run.trace) for execution in tries[: -len(turns)]):
                    return [tries[k : k + len(turns)] for k in range(0, len(tries), len(turns))]
        if len(programs) > 1:
            half = len(programs) // 2
            return [
                *_run(worlds, programs[:half], turns, together),
                *_run(worlds, programs[half:], turns, together),
            ]
    found: list[list[Execution]] = []
    for program in programs:
        found.append([])
        with suppress(Flooded):
            for turn in turns:
                found[-1].append(worlds.alone(replace(turn, program=program)))
    return found


# --- the same behavior ----------------------------------------------------------------------------


def behave_alike(exercise: Exercise, one: Execution, other: Execution) -> bool:
    """Return whether two programs did the same in a case, as far as a check of this exercise can see.

    That is: on every rank the same values within the check's tolerance, with the same dtype and shape, the
    same changed inputs, and the same broken rules; or the same failure.
    """
    if one.run.failure is not None or other.run.failure is not None:
        alike = type(one.run.failure) is type(other.run.failure)
        return alike and _reason(one.run) == _reason(other.run)
    case = one.case
    try:
        if not all(
            _same_value(case, rank, one.run.values[rank], other.run.values[rank])
            for rank in range(case.world_size)
        ):
            return False
    except Exception:
        return False  # a hostile rank may send values that cannot be compared
    if [*map(list, one.changed)] != [*map(list, other.changed)]:
        return False
    return broken_rules(exercise, one) == broken_rules(exercise, other)


def _same_value(case: Case, rank: int, one: Any, other: Any) -> bool:
    if vast_range(one) or vast_range(other):
        return False
    if isinstance(one, Measured) and isinstance(other, Measured):
        one, other = one.found, other.found
    if isinstance(case.right, (NamedParts, Reference)):
        return case.right.same(one, other, rank)
    return same(other, one, case.tolerance, case.scale)


def broken_rules(exercise: Exercise, execution: Execution) -> list[bool]:
    """Return for each rule of the exercise whether it is broken."""
    return [bool(rule.problem(execution.run.trace, execution.case)) for rule in exercise.rules]


def _reason(run: Run) -> list[Any]:
    """Return why a run ended: the error, or which rank waits in which call; empty if it ended well."""
    failure = run.failure
    if isinstance(failure, RankFailed):
        return [failure.error.kind, _PASSING_THINGS.sub("", failure.error.message)]
    if isinstance(failure, Deadlock):
        found = failure.diagnosis
        waits = [(w.rank, w.call, w.event.peer if w.event else None) for w in found.waits]
        return [found.kind, *waits]
    if isinstance(failure, RankDied):
        return [failure.rank, failure.signal]
    return [w.call for w in failure.waits] if isinstance(failure, RankTimeout) else []
