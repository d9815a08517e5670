"""NAME.answers, next to an exercise's Python file: known mistakes, other wrong answers, and right answers.

    # %% divided twice
    # The sum of the gradients is divided by the world size twice. (ReduceOp.AVG already divides.)
    - dist.all_reduce(parameter.grad)
    + dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)

    # %% wrong: a shared weight is sent twice | breaks: each trained parameter's gradient is sent once
    - for parameter in model.parameters():
    + for _, parameter in model.named_parameters(remove_duplicate=False):

    # %% right: all in flight at once
    def average_gradients(model): ...

A marker contains the kind and the title. Without a kind, the entry is a known mistake. Comment lines under
its marker contain a sentence for learners who make the mistake. The title may be followed by fields, each
after a `|`:

    crashed, deadlocked, ...    the outcome of the answer's check, if it is not "wrong"
    breaks: TEXT                of a wrong answer: the text of the broken rule
    shows: TEXT                 of a wrong answer: words that its author must be shown
    from: TITLE                 the base of the edit is the right answer with this title, not the solution
    seen: NAME                  of a script's mistake, which needs no program: the observation in its run
    is: TITLE                   of a script's wrong answer: the title of the recognized mistake

A program is an edit (see `edits`) of the reference solution, or is written as a whole if that is shorter.
Every whole program starts with `import torch`, `import torch.distributed as dist` and the code before the
first marker.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from helpers.check_result import Outcome
from helpers.checks.edits import is_edit
from helpers.checks.reference_source import MissingSolution, Program, whole_program

IMPORTS = "import torch\nimport torch.distributed as dist\n"
_DISALLOWED_OUTCOMES = (Outcome.PASSED, Outcome.NOT_ATTEMPTED, Outcome.UNREADABLE, Outcome.FAULT)
_MARKER_PATTERN = re.compile(r"^# %% (.*)\n((?:#.*\n)*)", re.MULTILINE)
_FIELD_NAMES = ("breaks", "shows", "from", "seen", "is")


class AnswerKind(Enum):
    """The kind of an entry. A marker's title begins with the kind's value."""

    MISTAKE = ""
    WRONG = "wrong: "
    RIGHT = "right: "


@dataclass(frozen=True)
class KnownAnswer:
    """One entry of a file of answers.

    words: the sentence for the author of a mistake. source: the whole program. edit: the edit that produces
    the program, or "" if the program was written as a whole. rule, shows, base, seen, mistake: the marker's
    fields `breaks:`, `shows:`, `from:`, `seen:` and `is:`.
    """

    kind: AnswerKind
    title: str
    words: str
    source: str
    outcome: Outcome = Outcome.WRONG
    edit: str = ""
    rule: str = ""
    shows: str = ""
    base: str = ""
    seen: str = ""
    mistake: str = ""


def read_answers_file(
    text: str, file: str = "", reference: Callable[[], Program] | None = None
) -> tuple[KnownAnswer, ...]:
    """Read the text of a file of answers. reference: returns the solution; called only for edits.

    Raises:
        ValueError: An entry is malformed, or an edit does not fit. The message names file, line and title.
    """
    # normalize newlines as reading a file does, so that writing a string does not change its lines
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # find markers without parsing Python, because all programs of a file define the same name
    markers = list(_MARKER_PATTERN.finditer(text))
    common = common_code(text)
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    answers: list[KnownAnswer] = []
    edits: list[tuple[int, str]] = []
    for marker, end in zip(markers, ends, strict=False):  # without markers, only one end remains
        place = f"{file} line {text[: marker.start()].count(chr(10)) + 1}, `# %% {marker[1]}`"
        body = text[marker.end() : end].rstrip("\n") + "\n"
        try:
            answer = _parse_entry(marker[1], marker[2], body, common)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        if answer.edit:
            edits.append((len(answers), place))
        answers.append(answer)
    right_answers = {
        answer.title: answer
        for answer in answers
        if answer.kind is AnswerKind.RIGHT and not answer.edit
    }
    for index, place in edits:
        try:
            answers[index] = _apply_edit(answers[index], right_answers, reference)
        except MissingSolution:
            raise
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    return tuple(answers)


def common_code(text: str) -> str:
    """Return the start of every whole program: the imports, and the code before the first marker."""
    first_marker = _MARKER_PATTERN.search(text)
    return IMPORTS + (text[: first_marker.start()] if first_marker else "")


def find_end_of_mistakes(text: str) -> tuple[int, int]:
    """Return the end of the mistakes at the start of a file, and their number."""
    other_kinds = (AnswerKind.WRONG.value, AnswerKind.RIGHT.value)
    markers = list(_MARKER_PATTERN.finditer(text))
    for count, marker in enumerate(markers):
        if marker[1].startswith(other_kinds):
            return marker.start(), count
    return len(text), len(markers)


def _parse_entry(marker: str, comment: str, body: str, common: str) -> KnownAnswer:
    kind = next(kind for kind in reversed(AnswerKind) if marker.startswith(kind.value))
    title, *fields_text = (part.strip() for part in marker.removeprefix(kind.value).split(" | "))
    words = " ".join(line.removeprefix("#").strip() for line in comment.splitlines())
    fields = dict.fromkeys(_FIELD_NAMES, "")
    outcome = Outcome.PASSED if kind is AnswerKind.RIGHT else Outcome.WRONG
    for part in fields_text:
        name, colon, value = part.partition(": ")
        if colon and name in _FIELD_NAMES:
            fields[name] = value
        elif kind is not AnswerKind.RIGHT:
            outcome = _parse_outcome(part)
    if kind is AnswerKind.MISTAKE and not words:
        raise ValueError("the message is missing: write it as comment lines below the marker")
    if kind is AnswerKind.RIGHT:
        words, body = "", comment + body  # a comment at the start of a program
    if fields["seen"] and not body.strip():
        common = body = ""
    edit = body if is_edit(body) else ""
    return KnownAnswer(
        kind,
        title,
        words,
        "" if edit else common + body,
        outcome,
        edit.strip("\n"),
        fields["breaks"],
        fields["shows"],
        fields["from"],
        fields["seen"],
        fields["is"],
    )


def _parse_outcome(text: str) -> Outcome:
    outcomes = [outcome.value for outcome in Outcome if outcome not in _DISALLOWED_OUTCOMES]
    if text not in outcomes:
        raise ValueError(
            f"{text!r} is not one of {', '.join(outcomes)}, and none of the fields "
            f"{', '.join(_FIELD_NAMES)}"
        )
    return Outcome(text)


def _apply_edit(
    answer: KnownAnswer,
    right_answers: dict[str, KnownAnswer],
    reference: Callable[[], Program] | None,
) -> KnownAnswer:
    if answer.base:
        if answer.base not in right_answers:
            raise ValueError(f"no right answer of this file is called {answer.base!r}")
        return replace(
            answer,
            source=whole_program(right_answers[answer.base].source).apply_edit_to_source(
                answer.edit
            ),
        )
    if reference is None:
        raise ValueError("it is an edit, and there is no solution to apply it to")
    return replace(answer, source=with_imports(reference().apply_edit_to_source(answer.edit)))


def with_imports(source: str) -> str:
    """Return a program with torch's imports, which the solutions of some exercises already contain."""
    return source if source.startswith(IMPORTS) else IMPORTS + source


def write_entry(answer: KnownAnswer) -> str:
    """Return an entry in the file's format."""
    marker = [answer.kind.value + answer.title]
    if answer.outcome not in (Outcome.WRONG, Outcome.PASSED):
        marker.append(answer.outcome.value)
    values = (answer.rule, answer.shows, answer.base, answer.seen, answer.mistake)
    fields = zip(_FIELD_NAMES, values, strict=True)
    marker += [f"{name}: {value}" for name, value in fields if value]
    # break lines only at spaces, so that paths and names are not split
    lines = textwrap.wrap(answer.words, 106, break_long_words=False, break_on_hyphens=False)
    comment = "".join(f"# {line}\n" for line in lines)
    body = answer.edit or answer.source.removeprefix(IMPORTS)
    return f"# %% {' | '.join(marker)}\n{comment}" + body.strip("\n") + "\n"


def join_entries(entries: Sequence[str]) -> str:
    """Return the text of a file with these entries."""
    return "\n".join(entries)
