"""Prove an exercise's known mistakes: a check rejects each, and its author reads its own sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from helpers.answers.data import Answer
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.grade import grade
from helpers.checks.mistakes import (
    KnownMistake,
    forget_known,
    known_mistakes,
    own_folder,
    path_of,
    read_mistakes,
    with_mistake,
)
from helpers.checks.result import CheckResult, Outcome


class CannotAdd(Exception):
    """A wrong answer cannot become a known mistake. One line: why not."""


@dataclass(frozen=True)
class Proof:
    """What a check made of one mistake.

    outcome: as a check says it. failed, of: how many cases failed (up to the first that ended the check),
    and how many there are. advice: the sentence that its author reads. others: titles of the mistakes whose
    sentence this is, if it is not its own.
    """

    mistake: KnownMistake
    outcome: str
    failed: int
    of: int
    advice: str
    others: tuple[str, ...] = ()

    @property
    def is_rejected(self) -> bool:
        return self.failed > 0 and self.outcome == self.mistake.outcome.value

    @property
    def is_own(self) -> bool:
        return is_sentence(self.mistake.words, self.advice)

    @property
    def is_good(self) -> bool:
        return self.is_rejected and self.is_own


def prove(
    exercise: Exercise, mistake: KnownMistake, secret: str = VISIBLE_SECRET, every_case: bool = True
) -> Proof:
    """Check one mistake as if a learner had written it. secret: of hidden cases, which have no advice."""
    result = _checked(exercise, mistake, secret, every_case)
    failed = [case for case in result.cases if not case.passed]
    advice = failed[0].advice if failed else ""
    others = [
        each.title
        for each in known_mistakes(exercise)
        if each.words != mistake.words and is_sentence(each.words, advice)
    ]
    return Proof(
        mistake, result.outcome.value, len(failed), len(result.cases), advice, tuple(others)
    )


def _checked(
    exercise: Exercise, mistake: KnownMistake, secret: str, every_case: bool
) -> CheckResult:
    answer = Answer(exercise.name, mistake.source, ())
    return grade(exercise, answer, str, secret, every_case=every_case)


def added(exercise: Exercise, file: Path, words: str) -> tuple[KnownMistake, ...]:
    """Add the wrong answer in a file to an exercise's known mistakes; return all of them.

    words: its sentence. Its title is the file's name. Raise CannotAdd where it cannot teach anything.
    """
    mistake = KnownMistake(file.stem.replace("_", " "), words, file.read_text(encoding="utf-8"))
    _can_be_added(exercise, mistake)
    # what does not parse would be rejected as such in a notebook, and reach no case
    try:
        ast.parse(mistake.source)
    except (SyntaxError, ValueError) as error:
        raise CannotAdd(f"{file.name} is not valid Python: {error}") from None
    # by way of its file's form: what is proven is what will be read
    (as_read,) = read_mistakes(_with_mistake("", mistake))
    outcome = _checked(exercise, as_read, VISIBLE_SECRET, every_case=False).outcome
    if outcome is Outcome.PASSED:
        raise CannotAdd(f"{file.name} passes all visible cases: it is not a wrong answer")
    if outcome is Outcome.NOT_ATTEMPTED:
        raise CannotAdd(
            f"{file.name} does not answer the exercise: it has to define {exercise.name}"
        )
    _append(path_of(exercise), replace(mistake, outcome=outcome))
    return known_mistakes(exercise)


def add_own(exercise: Exercise, mistake: KnownMistake) -> Path:
    """Add a learner's wrong answer, with the instructor's sentence, to the instructor's own mistakes.

    Return the file. Nothing is run. Raise CannotAdd where it cannot teach anything.
    """
    mistake = replace(mistake, title=_free_title(exercise, mistake.title))
    _can_be_added(exercise, mistake)
    path = own_folder() / f"{exercise.name}.py"
    _append(path, mistake)
    return path


def _free_title(exercise: Exercise, title: str) -> str:
    """Return the title, or with a number: two programs may deserve one sentence, from which it is made."""
    taken = {known.title for known in known_mistakes(exercise)}
    titles = (title if number == 1 else f"{title} {number}" for number in count(1))
    return next(each for each in titles if each not in taken)


def _can_be_added(exercise: Exercise, mistake: KnownMistake) -> None:
    if not mistake.words.strip():
        raise CannotAdd('say what its author must read: --say "..."')
    if any(known.title == mistake.title for known in known_mistakes(exercise)):
        raise CannotAdd(
            f"{exercise.name} has a mistake called {mistake.title!r} already: choose another title"
        )


def _with_mistake(text: str, mistake: KnownMistake) -> str:
    try:
        return with_mistake(text, mistake)
    except ValueError as error:
        raise CannotAdd(f"{mistake.title!r} was not added: {error}") from None


def _append(path: Path, mistake: KnownMistake) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    # encoded before the file is opened: half a surrogate pair must not cost what the file has
    content = _with_mistake(before, mistake).encode("utf-8", "replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    forget_known()


def is_sentence(words: str, shown: str) -> bool:
    """Whether a sentence that was shown is this one, with facts of some case filled in."""
    # a fact may be anything, so braces match anything
    pattern = re.sub(r"\\\{\w+\\\}", ".*", re.escape(words))
    return re.fullmatch(pattern, shown, re.DOTALL) is not None


def table(exercise: Exercise, proofs: Sequence[Proof]) -> str:
    """Return a report for the author of an exercise: a line for each mistake."""
    lines = [f"{exercise.heading}: {len(proofs)} mistakes"]
    for proof in proofs:
        fate = f"{proof.outcome} in {proof.failed} of {proof.of} cases"
        if not proof.is_rejected:
            why = (
                f"expected: {proof.mistake.outcome.value}; the outcome is the word after its title"
            )
        elif proof.is_own:
            why = "its own sentence"
        elif proof.others:
            why = f"the sentence of: {', '.join(proof.others)}"
        else:
            why = f"not its own sentence, but: {proof.advice or 'none'}"
            # two that behave alike silence each other, as `explain` shows neither sentence
            if not proof.advice or proof.advice not in {p.mistake.words for p in proofs}:
                why += "; if another mistake behaves like this one, give both the same sentence"
        lines.append(f"  {'ok ' if proof.is_good else 'BAD'} {proof.mistake.title}: {fate}; {why}")
    return "\n".join(lines)
