"""Answers of the kind that learners hand in, kept as Python files with a marker before each.

    # %% right: rank 0 begins
    # %% wrong: everybody receives first | deadlocked | says: cycle of receives
    # %% wrong: over the only checkpoint | crashed | is: half a file is loaded

A wrong one names the outcome, and a text (a regular expression) that the learner must be shown, or the title
of the known outcome as which it must be recognized.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "submissions"
PRELUDE = "import torch\nimport torch.distributed as dist\n"
_MARK = re.compile(r"^# %% (right|wrong): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """One answer to the exercise called `exercise`."""

    exercise: str
    notebook: str
    right: bool
    title: str
    source: str
    outcome: str = ""
    says: str = ""
    mistake: str = ""

    def __str__(self) -> str:
        return f"{self.exercise}: {self.title}"


def read_samples(path: Path) -> list[Sample]:
    """Cut one file into its samples. Code before the first marker belongs to all of them."""
    text = path.read_text()
    marks = list(_MARK.finditer(text))
    common = text[: marks[0].start()] if marks else ""
    samples = []
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        source = text[mark.end() : following.start() if following else len(text)]
        title, *more = (part.strip() for part in mark[2].split("|", 2))
        right = mark[1] == "right"
        kind, _, words = more[1].partition(":") if len(more) == 2 else ("", "", "")
        if not right and kind not in {"says", "is"}:
            line = text[: mark.start()].count("\n") + 1
            raise ValueError(
                f"{path}:{line}: `# %% wrong: title | outcome | says: pattern` is wanted, "
                "or `is: title of a known outcome`"
            )
        outcome = "passed" if right else more[0]
        says, mistake = (words.strip() if kind == name else "" for name in ("says", "is"))
        sample = Sample(
            path.stem, path.parent.name, right, title, common + source, outcome, says, mistake
        )
        samples.append(sample)
    return samples


def all_samples() -> list[Sample]:
    """Return every sample of every exercise."""
    return [sample for path in sorted(FOLDER.glob("*/*.py")) for sample in read_samples(path)]
