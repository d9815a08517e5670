"""Prove what a file of answers claims: how a check of each answer ends, and what its author reads."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path

from helpers.answers.build import cell_number
from helpers.answers.data import Answer, Origin
from helpers.answers.listing import DEFINITIONS
from helpers.checks.answer_file import IMPORTS, AnswerKind, KnownAnswer
from helpers.checks.case import Case
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.grade import grade
from helpers.checks.judge import Execution
from helpers.checks.match_mistakes import keep_runs
from helpers.checks.mistakes import (
    KnownMistake,
    forget_known,
    known_answers,
    known_mistakes,
    own_folder,
    path_of,
    read_mistakes,
    solution_of,
    with_mistake,
)
from helpers.checks.reference import program_of_source
from helpers.checks.result import CheckResult, Outcome
from helpers.views.plain import plural
from helpers.views.verdict import verdict_text

# A name in braces that a case's facts should have filled in. Braces in an f-string such as f"{rank}" are
# Python.
_FACT = re.compile(r"\{(?!rank\b)\w+\}")
MOST_LINES = 8
"""Largest number of lines of an edit. A program that differs in more lines is stored whole."""


class CannotAdd(Exception):
    """A wrong answer cannot become a known mistake. The message is one line and says why."""


@dataclass(frozen=True)
class Proof:
    """The result of checking one mistake.

    outcome: of the check. failed, of: how many cases failed (up to the first that ended the check), and how
    many there are. advice: the sentence that its author reads. others: titles of the mistakes whose
    sentence this is, if it is not this mistake's own. flaw: see `flaw`. broken: the rules that it
    breaks.
    """

    mistake: KnownMistake
    outcome: str
    failed: int
    of: int
    advice: str
    others: tuple[str, ...] = ()
    flaw: str = ""
    broken: tuple[str, ...] = ()

    @property
    def is_rejected(self) -> bool:
        return not self.flaw and self.failed > 0 and self.outcome == self.mistake.outcome.value

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
    result = _checked(exercise, mistake.source, secret, every_case)
    failed = [case for case in result.cases if not case.passed]
    advice = failed[0].advice if failed else ""
    others = [
        each.title
        for each in known_mistakes(exercise)
        if each.words != mistake.words and is_sentence(each.words, advice)
    ]
    return Proof(
        mistake,
        result.outcome.value,
        len(failed),
        len(result.cases),
        advice,
        tuple(others),
        flaw(exercise, mistake),
        failed[0].broken_rules if failed else (),
    )


def flaw(exercise: Exercise, known: KnownAnswer | KnownMistake) -> str:
    """Return what is wrong with an entry before any check, such as the name of a rule that does not exist."""
    try:
        tree = ast.parse(known.source)
    except (SyntaxError, ValueError) as error:
        return f"it is not valid Python: {error}"
    if known.source and exercise.name not in bound_names(tree):
        return f"it does not define `{exercise.name}`"
    if _FACT.search(known.words) and all(
        _FACT.search(case.say(known.words)) for case in _visible(exercise)
    ):
        return "its sentence names a fact in braces that no case has"
    rules = [rule.text for rule in exercise.rules]
    if isinstance(known, KnownAnswer) and known.rule and known.rule not in rules:
        return f"no rule has the text {known.rule!r}. The rules are: {', '.join(map(repr, rules))}"
    return ""


@cache
def _visible(exercise: Exercise) -> tuple[Case, ...]:
    return exercise.draw()


def bound_names(tree: ast.Module) -> set[str]:
    """Return the names that a program binds at its top level."""
    found = {node.name for node in tree.body if isinstance(node, DEFINITIONS)}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            found |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    return found


def problem(exercise: Exercise, known: KnownAnswer, secret: str = VISIBLE_SECRET) -> str:
    """Return how a check differs from what the file says about an answer, or "".

    On hidden cases, which have no advice, a wrong answer only has to fail. A script's mistake without a
    program is proved by the wrong answers that name it.
    """
    if why := flaw(exercise, known):
        return why
    if not known.source:
        return ""
    result = _checked(exercise, known.source, secret, every_case=False)
    shown = verdict_text(result)
    failed = next((case for case in result.cases if not case.passed), None)
    if known.kind is AnswerKind.RIGHT:
        return "" if result.passed else f"it is rejected:\n{shown}"
    if result.passed:
        return "it passes all cases: it is not a wrong answer"
    if secret != VISIBLE_SECRET:
        return ""
    if result.outcome is not known.outcome:
        return f"a check ends with {result.outcome.value!r}, not {known.outcome.value!r}:\n{shown}"
    advice = failed.advice if failed else ""
    if known.kind is AnswerKind.MISTAKE and not is_sentence(known.words, advice):
        return f"its author is shown a different message: {advice or 'none'}\n{shown}"
    if known.mistake and result.mistake != known.mistake:
        return (
            f"it is recognized as {result.mistake or 'nothing'!r}, not {known.mistake!r}:\n{shown}"
        )
    if known.rule and (failed is None or known.rule not in failed.broken_rules):
        return f"it does not break the rule {known.rule!r}:\n{shown}"
    if known.shows not in shown:
        return f"its author is not shown {known.shows!r}:\n{shown}"
    return ""


_runs: dict[bytes, Execution] = {}
"""What known mistakes did in the cases that proofs have run."""


def _checked(exercise: Exercise, source: str, secret: str, every_case: bool) -> CheckResult:
    # Source lines are known, as in a learner's cell, because some advice looks at the line that failed.
    lines = (Origin(1, source.count("\n") + 1, 0, 1),)
    answer = Answer(exercise.name, source, lines)
    with keep_runs(_runs):
        return grade(exercise, answer, cell_number, secret, every_case=every_case)


def added(exercise: Exercise, file: Path, words: str) -> tuple[KnownMistake, ...]:
    """Add the wrong answer in a file to an exercise's known mistakes; return all of them.

    words: its sentence. Its title is the file's name. Raise CannotAdd if it teaches nothing.
    """
    mistake = KnownMistake(file.stem.replace("_", " "), words, file.read_text(encoding="utf-8"))
    _can_be_added(exercise, mistake)
    # an answer that does not parse is rejected by the notebook and never reaches a case
    try:
        ast.parse(mistake.source)
    except (SyntaxError, ValueError) as error:
        raise CannotAdd(f"{file.name} is not valid Python: {error}") from None
    # write and read the entry in the file's form, so that the proof tests what will be read later
    if why := flaw(exercise, mistake):
        raise CannotAdd(f"{file.name}: {why}")
    mistake = _as_edit(exercise, mistake)
    (as_read,) = (mistake,) if mistake.edit else read_mistakes(_with_mistake("", mistake))
    outcome = _checked(exercise, as_read.source, VISIBLE_SECRET, every_case=False).outcome
    if outcome is Outcome.PASSED:
        raise CannotAdd(f"{file.name} passes all visible cases: it is not a wrong answer")
    if outcome is Outcome.NOT_ATTEMPTED:
        raise CannotAdd(f"{file.name} does not answer the exercise: it must define {exercise.name}")
    _append(path_of(exercise), replace(mistake, outcome=outcome))
    return known_mistakes(exercise)


def program_called(exercise: Exercise, title: str) -> str:
    """Return the whole program of an answer in the exercise's file. Raise LookupError if there is none."""
    known = {each.title: each.source for each in known_answers(exercise)}
    known |= {each.title: each.source for each in known_mistakes(exercise)}
    if title not in known:
        near = difflib.get_close_matches(title, known, 3) or list(known)[:3]
        raise LookupError(
            f"{exercise.name} has no answer called {title!r}, but for example "
            f"{', '.join(map(repr, near))}"
        )
    return known[title]


def _as_edit(exercise: Exercise, mistake: KnownMistake) -> KnownMistake:
    """Return the mistake as the smallest edit of the solution or of a right answer, if that edit is small."""
    bases = {"": solution_of(path_of(exercise))}
    for known in known_answers(exercise):
        if known.kind is AnswerKind.RIGHT and not known.edit:
            bases[known.title] = program_of_source(known.source)
    best = mistake
    most = MOST_LINES
    for title, base in bases.items():
        if edit := base.edit_for(mistake.source, most):
            best = replace(mistake, edit=edit, base=title, source=IMPORTS + base.edited(edit))
            most = len(edit.splitlines()) - 1
    return best


def add_own(exercise: Exercise, mistake: KnownMistake) -> Path:
    """Add a learner's wrong answer, with the instructor's sentence, to the instructor's own mistakes.

    Return the file. Nothing is run. Raise CannotAdd if it teaches nothing.
    """
    mistake = replace(mistake, title=_free_title(exercise, mistake.title))
    _can_be_added(exercise, mistake)
    path = own_folder() / f"{exercise.name}.py"
    _append(path, mistake)
    return path


def _free_title(exercise: Exercise, title: str) -> str:
    """Return the title, with a number if it is taken: two programs may deserve one sentence."""
    taken = {known.title for known in known_mistakes(exercise)}
    titles = (title if number == 1 else f"{title} {number}" for number in count(1))
    return next(each for each in titles if each not in taken)


def _can_be_added(exercise: Exercise, mistake: KnownMistake) -> None:
    if not mistake.words.strip():
        raise CannotAdd('add the message for its author: --say "..."')
    if any(known.title == mistake.title for known in known_mistakes(exercise)):
        raise CannotAdd(
            f"{exercise.name} has a mistake called {mistake.title!r} already: choose another title"
        )


def _with_mistake(text: str, mistake: KnownMistake, path: Path | None = None) -> str:
    try:
        return with_mistake(text, mistake, path)
    except ValueError as error:
        raise CannotAdd(f"{mistake.title!r} was not added: {error}") from None


def _append(path: Path, mistake: KnownMistake) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    # encode before opening the file: half of a surrogate pair must not cost the file's content
    content = _with_mistake(before, mistake, path).encode("utf-8", "replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    forget_known()


def is_sentence(words: str, shown: str) -> bool:
    """Return whether a sentence that was shown is this one, with the facts of some case filled in."""
    # a fact may be anything, so braces match anything
    pattern = re.sub(r"\\\{\w+\\\}", ".*", re.escape(words))
    return re.fullmatch(pattern, shown, re.DOTALL) is not None


def table(exercise: Exercise, proofs: Sequence[Proof]) -> str:
    """Return a report for the author of an exercise: a line for each mistake."""
    lines = [f"{exercise.heading}: {plural(len(proofs), 'mistake')}"]
    for proof in proofs:
        fate = f"{proof.outcome} in {proof.failed} of {plural(proof.of, 'case')}"
        if proof.flaw:
            why = proof.flaw
        elif not proof.failed:
            fate, why = "passed", "it passes all cases, so it is not a wrong answer"
        elif not proof.is_rejected:
            why = (
                f"expected: {proof.mistake.outcome.value}; the outcome is the word after its title"
            )
        elif proof.is_own:
            why = "its author is shown its sentence"
        elif proof.others:
            why = f"its author is shown the sentence of: {', '.join(proof.others)}"
        else:
            why = f"its author is shown a different message: {proof.advice or 'none'}"
            if proof.broken and not proof.advice:
                rules = " and ".join(map(repr, proof.broken))
                why += f"; it breaks {rules}, which is shown instead: write it as `wrong: ... | breaks: ...`"
            # if two behave alike, `match_mistakes` shows neither sentence
            elif not proof.advice or proof.advice not in {p.mistake.words for p in proofs}:
                alike = [
                    repr(other.mistake.title)
                    for other in proofs
                    if other is not proof and other.failed == proof.failed and not other.is_own
                ]
                which = " or ".join(alike) or "a mistake"
                why += f"; if {which} behaves like this one, give both the same sentence"
        lines.append(f"  {'ok ' if proof.is_good else 'BAD'} {proof.mistake.title}: {fate}; {why}")
    return "\n".join(lines)


def table_of_others(exercise: Exercise) -> tuple[str, bool]:
    """Try the right and other wrong answers. Return a line for each, and whether all end as the file says."""
    lines, good = [], True
    for known in known_answers(exercise):
        if known.kind is not AnswerKind.MISTAKE:
            why = problem(exercise, known)
            good &= not why
            lines.append(f"  {'BAD' if why else 'ok '} {known.kind.value}{known.title}")
            lines += [f"      {line}" for line in why.splitlines()]
    return "\n".join(lines), good
