"""An exercise's known mistakes: wrong programs, each with the sentence that its author must read.

    helpers/exercises/nb07_data_partitioning/mistakes/exact_accuracy.py

    # %% the padding is counted
    # The padded samples are counted too. Which of this rank's positions are beyond the data?
    def exact_accuracy(rank, world_size, predicted, labels, length): ...

The comment under a marker is the sentence; names in braces are filled in from the case's facts. The title
of a program that does not just return wrong values is followed by its outcome, such as `| crashed`.
Code before the first marker belongs to every program, and so do `import torch` and
`import torch.distributed as dist`.

Many mistakes are close to a solution. A learner's bundle has them compressed, so that nobody reads one just
by opening a file. It has all of each program, because a mistake is recognized by running it.

An instructor's own mistakes, learned from a class, are in files of the same form in a folder of their own:
`$REAL_RANKS_MISTAKES`, else `work/mistakes` of this copy of the course. They are read after the course's.
"""

from __future__ import annotations

import bz2
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from helpers.checks.result import Outcome

if TYPE_CHECKING:  # the exercise itself needs torch, its mistakes do not
    from helpers.checks.exercise import Exercise
    from helpers.checks.headings import Heading

SEALED = ".sealed"
_EXERCISES = Path(__file__).parents[1] / "exercises"
_IMPORTS = "import torch\nimport torch.distributed as dist\n"
_NEVER = (Outcome.PASSED, Outcome.NOT_ATTEMPTED, Outcome.UNREADABLE, Outcome.FAULT)
_OUTCOMES = [each.value for each in Outcome if each not in _NEVER]
_MARK = re.compile(r"^# %% (.*)\n((?:#.*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class KnownMistake:
    """A wrong program. words: what its author reads. outcome: how a check of it ends."""

    title: str
    words: str
    source: str
    outcome: Outcome = Outcome.WRONG


def known_mistakes(exercise: Exercise | Heading) -> tuple[KnownMistake, ...]:
    """Return an exercise's mistakes in the order of their files; none, where there is no file."""
    if not exercise.notebook:
        return ()
    return _mistakes_of(path_of(exercise), own_folder() / f"{exercise.name}.py")


@cache
def _mistakes_of(plain: Path, own: Path) -> tuple[KnownMistake, ...]:
    # a learner's bundle has the sealed file only
    sealed = plain.with_suffix(SEALED)
    found: tuple[KnownMistake, ...] = ()
    if plain.is_file():
        found = read_mistakes(plain.read_text(encoding="utf-8"), plain.name)
    elif sealed.is_file():
        content = bz2.decompress(sealed.read_bytes())
        found = msgspec.json.decode(content, type=tuple[KnownMistake, ...])
    return found + (
        read_mistakes(own.read_text(encoding="utf-8"), str(own)) if own.is_file() else ()
    )


def own_folder() -> Path:
    """Return the folder of the mistakes that an instructor has added to the course's."""
    named = os.environ.get("REAL_RANKS_MISTAKES")
    return Path(named).expanduser() if named else _EXERCISES.parents[1] / "work" / "mistakes"


def path_of(exercise: Exercise | Heading) -> Path:
    """Return where the mistakes of an exercise are."""
    return _EXERCISES / f"nb{exercise.notebook}" / "mistakes" / f"{exercise.name}.py"


def program_of(mistake: KnownMistake) -> str:
    """Return a mistake's program without the imports that all of them share."""
    return mistake.source.removeprefix(_IMPORTS).strip("\n")


def forget_known() -> None:
    """Read the files again when they are next asked for."""
    _mistakes_of.cache_clear()


def written(title: str, words: str, outcome: Outcome, source: str) -> str:
    """Return a mistake as its file has it. `with_mistake` checks that it reads back."""
    suffix = "" if outcome is Outcome.WRONG else f" | {outcome.value}"
    # a path or a name must come out as it went in: words are cut at spaces only
    lines = textwrap.wrap(words, 106, break_long_words=False, break_on_hyphens=False)
    comment = "\n".join(f"# {line}" for line in lines)
    return f"# %% {title}{suffix}\n{comment}\n" + source.strip("\n") + "\n"


def with_mistake(text: str, mistake: KnownMistake) -> str:
    """Return the text of a file of mistakes with one more at its end.

    Raise ValueError if the result would not read back as the mistakes of `text` and exactly this one.
    """
    words = " ".join(mistake.words.split())
    before = text.rstrip("\n") + "\n\n\n" if text else ""
    new = before + written(mistake.title, words, mistake.outcome, mistake.source)
    # A learner's program is data, but this file has it as text. A line within one of its strings may look
    # like a marker. It would become a mistake of its own, with a program and a sentence of the learner's.
    source = _common(new) + _ended(mistake.source.lstrip("\n"))
    expected = KnownMistake(mistake.title, words, source, mistake.outcome)
    if read_mistakes(new) != (*read_mistakes(text), expected):
        raise ValueError(
            "it would not read back as one known mistake. Look for a line of the program that begins with "
            "`# %% `, for example in a string, and for `|` in the title."
        )
    return new


def seal(mistakes: Sequence[KnownMistake]) -> bytes:
    """Return mistakes as a learner's bundle holds them: as data, in which no program can be a marker."""
    return bz2.compress(msgspec.json.encode(mistakes))


def read_mistakes(text: str, file: str = "") -> tuple[KnownMistake, ...]:
    """Cut the text of a file of mistakes into its programs.

    Raise ValueError, with the file and line, where a sentence is missing or an outcome is unknown.
    """
    # as a file is read: a text that is checked before it is written has the same lines as afterwards
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # read as text: the programs of a file all define the same name
    marks = list(_MARK.finditer(text))
    common = _common(text)
    found = []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):  # of no marks there is still one end
        title, _, outcome = (part.strip() for part in mark[1].partition("|"))
        words = " ".join(line.removeprefix("#").strip() for line in mark[2].splitlines())
        place = f"{file} line {text[: mark.start()].count(chr(10)) + 1}, `# %% {mark[1]}`"
        if not words:
            raise ValueError(f"{place}: the sentence is missing, as comment lines under the marker")
        if (outcome or "wrong") not in _OUTCOMES:
            raise ValueError(f"{place}: {outcome!r} is not one of {', '.join(_OUTCOMES)}")
        source = common + _ended(text[mark.end() : end])
        found.append(KnownMistake(title, words, source, Outcome(outcome or "wrong")))
    return tuple(found)


def _common(text: str) -> str:
    """Return what belongs to every program of a file: the imports, and the code before the first marker."""
    first = _MARK.search(text)
    return _IMPORTS + (text[: first.start()] if first else "")


def _ended(source: str) -> str:
    return source.rstrip("\n") + "\n"
