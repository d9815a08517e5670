"""Answers of the kind that learners hand in, kept as Python files with a marker before each.

    # %% right: rank 0 begins
    # %% wrong: everybody receives first | deadlocked | says: cycle of receives

A wrong one names the outcome and a text (a regular expression) that the learner must be shown.
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
        if not right and (len(more) != 2 or not more[1].startswith("says:")):
            line = text[: mark.start()].count("\n") + 1
            raise ValueError(
                f"{path}:{line}: `# %% wrong: title | outcome | says: pattern` is wanted"
            )
        outcome = "passed" if right else more[0]
        says = "" if right else more[1].removeprefix("says:").strip()
        notebook = path.parent.name
        samples.append(Sample(path.stem, notebook, right, title, common + source, outcome, says))
    return samples


def all_samples() -> list[Sample]:
    """Return every sample of every exercise."""
    return [sample for path in sorted(FOLDER.glob("*/*.py")) for sample in read_samples(path)]
