"""Prove the claims of a file of answers: the outcome of each answer's check, and its advice."""

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
from helpers.check_result import CheckResult, Outcome
from helpers.checks.answer_file import AnswerKind, KnownAnswer, with_imports
from helpers.checks.case import Case
from helpers.checks.check_answer import grade
from helpers.checks.execution import Execution
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.match_mistakes import record_runs
from helpers.checks.mistakes import (
    KnownMistake,
    answers_path,
    clear_caches,
    insert_mistake,
    instructor_folder,
    known_answers,
    known_mistakes,
    read_mistakes,
    solution_of,
)
from helpers.checks.reference_source import whole_program
from helpers.views.plain import plural
from helpers.views.verdict import verdict_text

# A name in braces that should have been replaced by a case's fact. Braces in an f-string such as f"{rank}"
# are part of Python.
_FACT_IN_BRACES_PATTERN = re.compile(r"\{(?!rank\b)\w+\}")
MAX_EDIT_LINES = 8
"""Largest number of lines in an edit. A program that differs in more lines is stored whole."""


class CannotAdd(Exception):
    """A wrong answer cannot become a known mistake. The message is a single line with the reason."""


@dataclass(frozen=True)
class Proof:
    """The result of checking one mistake.

    outcome: the outcome of the check. failed_count, case_count: the number of failed cases (up to the case
    that ended the check), and of all cases. advice: the sentence shown to its author. others: if the shown
    sentence belongs to other mistakes, their titles. flaw: the result of `find_flaw`. broken_rules: the rules
    that the mistake breaks.
    """

    mistake: KnownMistake
    outcome: str
    failed_count: int
    case_count: int
    advice: str
    others: tuple[str, ...] = ()
    flaw: str = ""
    broken_rules: tuple[str, ...] = ()

    @property
    def is_rejected(self) -> bool:
        return (
            not self.flaw and self.failed_count > 0 and self.outcome == self.mistake.outcome.value
        )

    @property
    def is_own(self) -> bool:
        return is_sentence(self.mistake.words, self.advice)

    @property
    def is_good(self) -> bool:
        return self.is_rejected and self.is_own


def check_mistake(
    exercise: Exercise, mistake: KnownMistake, secret: str = VISIBLE_SECRET, every_case: bool = True
) -> Proof:
    """Check one mistake as if a learner had written it. secret: for hidden cases, which have no advice."""
    result = _check_source(exercise, mistake.source, secret, every_case)
    failed = [case for case in result.cases if not case.passed]
    advice = failed[0].advice if failed else ""
    others = [
        entry.title
        for entry in known_mistakes(exercise)
        if entry.words != mistake.words and is_sentence(entry.words, advice)
    ]
    return Proof(
        mistake,
        result.outcome.value,
        len(failed),
        len(result.cases),
        advice,
        tuple(others),
        find_flaw(exercise, mistake),
        failed[0].broken_rules if failed else (),
    )


def find_flaw(exercise: Exercise, entry: KnownAnswer | KnownMistake) -> str:
    """Return a problem of an entry that is found without a check, such as an unknown rule, or ""."""
    try:
        tree = ast.parse(entry.source)
    except (SyntaxError, ValueError) as error:
        return f"it is not valid Python: {error}"
    if entry.source and exercise.name not in top_level_names(tree):
        return f"it does not define `{exercise.name}`"
    if _FACT_IN_BRACES_PATTERN.search(entry.words) and all(
        _FACT_IN_BRACES_PATTERN.search(case.fill_facts(entry.words))
        for case in _visible_cases(exercise)
    ):
        return "its message contains a fact in braces that no case has"
    rules = [rule.text for rule in exercise.rules]
    if isinstance(entry, KnownAnswer) and entry.rule and entry.rule not in rules:
        return f"no rule has the text {entry.rule!r}. The rules are: {', '.join(map(repr, rules))}"
    return ""


@cache
def _visible_cases(exercise: Exercise) -> tuple[Case, ...]:
    return exercise.draw()


def top_level_names(tree: ast.Module) -> set[str]:
    """Return the names bound at a program's top level."""
    names = {node.name for node in tree.body if isinstance(node, DEFINITIONS)}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
    return names


def answer_problem(exercise: Exercise, entry: KnownAnswer, secret: str = VISIBLE_SECRET) -> str:
    """Return the difference between a check and the file's claims about an answer, or "".

    On hidden cases, which have no advice, a wrong answer only has to fail. A script's mistake without a
    program is proved by the wrong answers that refer to it.
    """
    if flaw_text := find_flaw(exercise, entry):
        return flaw_text
    if not entry.source:
        return ""
    result = _check_source(exercise, entry.source, secret, every_case=False)
    shown_text = verdict_text(result)
    failed = next((case for case in result.cases if not case.passed), None)
    if entry.kind is AnswerKind.RIGHT:
        return "" if result.passed else f"it is rejected:\n{shown_text}"
    if result.passed:
        return "it passes all cases: it is not a wrong answer"
    if secret != VISIBLE_SECRET:
        return ""
    if result.outcome is not entry.outcome:
        return f"a check ends with {result.outcome.value!r}, not {entry.outcome.value!r}:\n{shown_text}"
    advice = failed.advice if failed else ""
    if entry.kind is AnswerKind.MISTAKE and not is_sentence(entry.words, advice):
        return f"its author is shown a different message: {advice or 'none'}\n{shown_text}"
    if entry.mistake and result.mistake != entry.mistake:
        return f"it is recognized as {result.mistake or 'nothing'!r}, not {entry.mistake!r}:\n{shown_text}"
    if entry.rule and (failed is None or entry.rule not in failed.broken_rules):
        return f"it does not break the rule {entry.rule!r}:\n{shown_text}"
    if entry.shows not in shown_text:
        return f"its author is not shown {entry.shows!r}:\n{shown_text}"
    return ""


_recorded_runs: dict[bytes, Execution] = {}
"""The recorded runs of known mistakes, on the cases used in proofs."""


def _check_source(exercise: Exercise, source: str, secret: str, every_case: bool) -> CheckResult:
    # Source lines are known, as in a learner's cell, because some advice depends on the line that fails.
    lines = (Origin(1, source.count("\n") + 1, 0, 1),)
    answer = Answer(exercise.name, source, lines)
    with record_runs(_recorded_runs):
        return grade(exercise, answer, cell_number, secret, every_case=every_case)


def add_mistake(exercise: Exercise, file: Path, words: str) -> tuple[KnownMistake, ...]:
    """Add the wrong answer in a file to an exercise's known mistakes; return all known mistakes.

    words: the mistake's sentence. Its title is the file's name. Raise CannotAdd if the mistake teaches
    nothing.
    """
    mistake = KnownMistake(file.stem.replace("_", " "), words, file.read_text(encoding="utf-8"))
    _check_addable(exercise, mistake)
    # an answer that does not parse is rejected by the notebook before any case runs
    try:
        ast.parse(mistake.source)
    except (SyntaxError, ValueError) as error:
        raise CannotAdd(f"{file.name} is not valid Python: {error}") from None
    # write the entry to the file's format and read it again, so that the proof tests the entry that will be
    # read later
    if flaw_text := find_flaw(exercise, mistake):
        raise CannotAdd(f"{file.name}: {flaw_text}")
    mistake = _shorten_to_edit(exercise, mistake)
    (as_read,) = (mistake,) if mistake.edit else read_mistakes(_insert_mistake("", mistake))
    outcome = _check_source(exercise, as_read.source, VISIBLE_SECRET, every_case=False).outcome
    if outcome is Outcome.PASSED:
        raise CannotAdd(f"{file.name} passes all visible cases: it is not a wrong answer")
    if outcome is Outcome.NOT_ATTEMPTED:
        raise CannotAdd(f"{file.name} does not answer the exercise: it must define {exercise.name}")
    _append_to_file(answers_path(exercise), replace(mistake, outcome=outcome))
    return known_mistakes(exercise)


def find_program(exercise: Exercise, title: str) -> str:
    """Return the whole program of an answer in the exercise's file. Raise LookupError if there is none."""
    sources = {entry.title: entry.source for entry in known_answers(exercise)}
    sources |= {entry.title: entry.source for entry in known_mistakes(exercise)}
    if title not in sources:
        similar = difflib.get_close_matches(title, sources, 3) or list(sources)[:3]
        raise LookupError(
            f"{exercise.name} has no answer called {title!r}, but for example "
            f"{', '.join(map(repr, similar))}"
        )
    return sources[title]


def _shorten_to_edit(exercise: Exercise, mistake: KnownMistake) -> KnownMistake:
    """Return the mistake as the smallest edit of the solution or of a right answer, if that edit is small."""
    bases = {"": solution_of(answers_path(exercise))}
    for entry in known_answers(exercise):
        if entry.kind is AnswerKind.RIGHT and not entry.edit:
            bases[entry.title] = whole_program(entry.source)
    best = mistake
    max_lines = MAX_EDIT_LINES
    for title, base in bases.items():
        if edit := base.make_edit_for(mistake.source, max_lines):
            best = replace(
                mistake, edit=edit, base=title, source=with_imports(base.apply_edit_to_source(edit))
            )
            max_lines = len(edit.splitlines()) - 1
    return best


def add_instructor_mistake(exercise: Exercise, mistake: KnownMistake) -> Path:
    """Add a learner's wrong answer, with the instructor's sentence, to the instructor's mistakes.

    Return the file's path. Nothing is run. Raise CannotAdd if the mistake teaches nothing.
    """
    mistake = replace(mistake, title=_free_title(exercise, mistake.title))
    _check_addable(exercise, mistake)
    path = instructor_folder() / f"{exercise.name}.py"
    _append_to_file(path, mistake)
    return path


def _free_title(exercise: Exercise, title: str) -> str:
    """Return the title, with a number if it is already used, because two programs may have one sentence."""
    used_titles = {other.title for other in known_mistakes(exercise)}
    titles = (title if number == 1 else f"{title} {number}" for number in count(1))
    return next(candidate for candidate in titles if candidate not in used_titles)


def _check_addable(exercise: Exercise, mistake: KnownMistake) -> None:
    if not mistake.words.strip():
        raise CannotAdd('add the message for its author: --say "..."')
    if any(other.title == mistake.title for other in known_mistakes(exercise)):
        raise CannotAdd(
            f"{exercise.name} has a mistake called {mistake.title!r} already: choose another title"
        )


def _insert_mistake(text: str, mistake: KnownMistake, path: Path | None = None) -> str:
    try:
        return insert_mistake(text, mistake, path)
    except ValueError as error:
        raise CannotAdd(f"{mistake.title!r} was not added: {error}") from None


def _append_to_file(path: Path, mistake: KnownMistake) -> None:
    old_text = path.read_text(encoding="utf-8") if path.exists() else ""
    # encode before opening the file, so that half of a surrogate pair cannot destroy the file's content
    content = _insert_mistake(old_text, mistake, path).encode("utf-8", "replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    clear_caches()


def is_sentence(words: str, shown_text: str) -> bool:
    """Return whether a shown sentence is `words` with the facts of some case filled in."""
    # facts are arbitrary, so braces match any text
    pattern = re.sub(r"\\\{\w+\\\}", ".*", re.escape(words))
    return re.fullmatch(pattern, shown_text, re.DOTALL) is not None


def proof_table(exercise: Exercise, proofs: Sequence[Proof]) -> str:
    """Return a report for the author of an exercise, with a line for each mistake."""
    lines = [f"{exercise.heading}: {plural(len(proofs), 'mistake')}"]
    for proof in proofs:
        outcome_text = (
            f"{proof.outcome} in {proof.failed_count} of {plural(proof.case_count, 'case')}"
        )
        if proof.flaw:
            comment = proof.flaw
        elif not proof.failed_count:
            outcome_text, comment = "passed", "it passes all cases, so it is not a wrong answer"
        elif not proof.is_rejected:
            comment = f"expected: {proof.mistake.outcome.value}"
            if proof.mistake.outcome is Outcome.WRONG:
                comment += f"; write `| {proof.outcome}` after its title"
        elif proof.is_own:
            comment = "its author is shown its message"
        elif proof.others:
            comment = f"its author is shown the message of: {', '.join(proof.others)}"
        else:
            comment = f"its author is shown a different message: {proof.advice or 'none'}"
            if proof.broken_rules and not proof.advice:
                rules = " and ".join(map(repr, proof.broken_rules))
                comment += (
                    f"; the answer also breaks {rules}, and that message is shown instead: write "
                )
                comment += "the entry as `wrong: ... | breaks: ...`"
            # if two mistakes behave alike, `match_mistakes` shows neither sentence
            elif not proof.advice or proof.advice not in {
                other_proof.mistake.words for other_proof in proofs
            }:
                similar = [
                    repr(other.mistake.title)
                    for other in proofs
                    if other is not proof
                    and other.failed_count == proof.failed_count
                    and not other.is_own
                ]
                similar_names = " or ".join(similar) or "a mistake"
                comment += f"; if {similar_names} behaves like this one, give both the same message"
        lines.append(
            f"  {'ok ' if proof.is_good else 'BAD'} {proof.mistake.title}: {outcome_text}; {comment}"
        )
    return "\n".join(lines)


def table_of_other_answers(exercise: Exercise) -> tuple[str, bool]:
    """Try the right and other wrong answers. Return a line for each, and whether all agree with the file."""
    lines, good = [], True
    for entry in known_answers(exercise):
        if entry.kind is not AnswerKind.MISTAKE:
            problem = answer_problem(exercise, entry)
            good &= not problem
            lines.append(f"  {'BAD' if problem else 'ok '} {entry.kind.value}{entry.title}")
            lines += [f"      {line}" for line in problem.splitlines()]
    return "\n".join(lines), good
