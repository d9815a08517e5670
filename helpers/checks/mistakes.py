"""An exercise's known mistakes: wrong programs, each with the sentence that its author must read.

    helpers/exercises/nb07_data_partitioning/mistakes/exact_accuracy.py

    # %% the padding is counted
    # The padded samples are counted too. Which of this rank's positions are beyond the data?
    def exact_accuracy(rank, world_size, predicted, labels, length): ...

The comment under a marker is the sentence; names in braces are filled in from the case's facts. The title
of a program that does not just return wrong values is followed by its outcome, such as `| crashed`.
Code before the first marker belongs to every program, and so do `import torch` and
`import torch.distributed as dist`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from helpers.checks.exercise import Exercise
from helpers.checks.result import Outcome

_IMPORTS = "import torch\nimport torch.distributed as dist\n"
_MARK = re.compile(r"^# %% (.*)\n((?:#.*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class KnownMistake:
    """A wrong program. words: what its author reads. outcome: how a check of it ends."""

    title: str
    words: str
    source: str
    outcome: Outcome = Outcome.WRONG


def known_mistakes(exercise: Exercise) -> tuple[KnownMistake, ...]:
    """Return an exercise's mistakes in the order of their file; none, where there is no file."""
    return _mistakes_of(exercise.notebook, exercise.name) if exercise.notebook else ()


@cache
def _mistakes_of(notebook: str, name: str) -> tuple[KnownMistake, ...]:
    file = resources.files(f"helpers.exercises.nb{notebook}") / "mistakes" / f"{name}.py"
    return read_mistakes(file.read_text()) if file.is_file() else ()


def read_mistakes(text: str) -> tuple[KnownMistake, ...]:
    """Cut the text of a file of mistakes into its programs. Raise ValueError where a sentence is missing."""
    marks = list(_MARK.finditer(text))
    common = _IMPORTS + (text[: marks[0].start()] if marks else "")
    found = []
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        title, _, outcome = (part.strip() for part in mark[1].partition("|"))
        words = " ".join(line.removeprefix("#").strip() for line in mark[2].splitlines())
        if not words:
            raise ValueError(f"a sentence is missing under the marker `# %% {mark[1]}`")
        source = common + text[mark.end() : following.start() if following else len(text)]
        found.append(KnownMistake(title, words, source, Outcome(outcome or "wrong")))
    return tuple(found)
