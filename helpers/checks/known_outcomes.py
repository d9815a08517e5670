"""A script exercise's known mistakes: each with the observation by which it is recognized.

    helpers/exercises/nb19_checkpoints/checkpoint_and_resume.outcomes

    # %% half a file is loaded | seen: half a file loaded
    # A rank was killed while it wrote, and left half a file, which was loaded as if it were whole.

The comment under a marker is the sentence that the author of the mistake reads; names in braces are filled in
from the case's facts. Entries that several exercises of a notebook share are in its `shared.outcomes`.

A script takes seconds, so its known mistakes are not run next to an answer, as those of other exercises are.
What a check observes of the answer's run has a name instead: a `Finding` says what was `seen`, and of a run
that failed `Exercise.observe` says it. Of all entries whose observation was made, the first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.ranks.failures import RankFailed, RankTimeout, is_consequence

if TYPE_CHECKING:  # both need torch, the entries do not
    from helpers.checks.exercise import Exercise
    from helpers.checks.headings import Heading
    from helpers.checks.judge import Tried
    from helpers.ranks.run import Run

_EXERCISES = Path(__file__).parents[1] / "exercises"
_ENTRY = re.compile(r"^# %% (.+?) \| seen: (.+)\n((?:#(?! %%).*\n)+)", re.MULTILINE)

APART = "ranks wait at different lines"
PEER_LEFT = "a peer left"
TIMED_OUT = "timed out"


@dataclass(frozen=True)
class KnownOutcome:
    """A mistake. seen: the name of the observation that shows it. words: what its author reads."""

    title: str
    seen: str
    words: str


def known_outcomes(exercise: Exercise | Heading) -> tuple[KnownOutcome, ...]:
    """Return the entries of an exercise, then those of its notebook that it does not replace by its own."""
    folder = _EXERCISES / f"nb{exercise.notebook}"
    own = _entries_of(folder / f"{exercise.name}.outcomes")
    titles = {entry.title for entry in own}
    shared = _entries_of(folder / "shared.outcomes")
    return (*own, *(entry for entry in shared if entry.title not in titles))


@cache
def _entries_of(path: Path) -> tuple[KnownOutcome, ...]:
    return read_outcomes(path.read_text(encoding="utf-8"), path.name) if path.is_file() else ()


def read_outcomes(text: str, file: str = "") -> tuple[KnownOutcome, ...]:
    """Cut a text into its entries. Raise ValueError, with the file, if a part of it is none."""
    if rest := _ENTRY.sub("", text).split():
        raise ValueError(
            f"{file}: {' '.join(rest[:8])!r} belongs to no entry. Expected: `# %% title | seen: "
            "observation`, and under it the sentence, as comment lines"
        )
    return tuple(
        KnownOutcome(title, seen.strip(), " ".join(words.replace("#", "").split()))
        for title, seen, words in _ENTRY.findall(text)
    )


def recognize(exercise: Exercise, tried: Tried) -> KnownOutcome | None:
    """Return the first entry whose observation explains all that is wrong in a case."""
    run = tried.run
    if run.failure is not None:
        observe = exercise.observe
        seen = {*(observe(tried.case, run) if observe else ()), *_of_failure(run)}
    else:
        found = [each for each in (*tried.findings(), tried.together()) if each is not None]
        # what explains one wrong rank and not another is at best half of the cause
        seen = set.intersection(*(set(each.seen) for each in found)) if found else set()
    return next((entry for entry in known_outcomes(exercise) if entry.seen in seen), None)


def _of_failure(run: Run) -> Iterator[str]:
    """Name what every failed run shows of itself."""
    failure = run.failure
    if isinstance(failure, RankFailed):
        yield f"raised {failure.error.kind}"
        if is_consequence(failure.error):
            yield PEER_LEFT
    elif isinstance(failure, RankTimeout):
        if len({wait.state for wait in failure.waits if wait.event is None}) > 1:
            yield APART
        yield TIMED_OUT
