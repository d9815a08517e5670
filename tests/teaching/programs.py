"""Write the programs and figures in docs/instructors.md again: `python -m tests.teaching.programs`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from helpers.checks.registry import exercises
from helpers.course.paths import paths
from helpers.course.workspace import find_workspace
from helpers.grading.disclosure import choose_mistakes
from helpers.teaching.lesson import read_lessons
from helpers.teaching.program import Session, divide_path

PAGE = Path(__file__).parents[2] / "docs" / "instructors.md"
PROGRAMS = (
    ("An evening", "ddp", 4),
    ("An afternoon for those who know DDP", "big", 7),
    ("Two evenings on failures", "hang", 1.5),
    ("A semester of 90 minutes a week", "everything", 1.5),
)
_BLOCK = re.compile(r"(?<=<!-- programs -->\n).*?(?=<!-- end of programs -->)", re.DOTALL)


def with_programs(text: str) -> str:
    """Return the text of the page with the current programs."""
    known = read_lessons(find_workspace())
    parts = []
    for title, name, hours in PROGRAMS:
        path = paths()[name]
        command = f"`course sessions --path {name} --hours {hours}`"
        table = as_table(divide_path(known, path, int(60 * hours)))
        parts.append(f"### {title}: {path.title}\n\n{path.goal} {command}\n\n{table}\n")
    written = "\n" + "\n".join(parts) + "\n"
    return _BLOCK.sub(lambda _: written, text)


def with_figures(text: str) -> str:
    """Return the text of the page with the numbers of known mistakes that a bundle leaves out."""
    chosen = choose_mistakes(find_workspace())
    total = chosen.left_out + sum(map(len, chosen.by_file.values()))
    for words in (
        f"{chosen.left_out:,} of the {total:,} known mistakes",
        f"for {len(chosen.laid_open)} of {len(exercises())} exercises",
    ):
        pattern = r"\s+".join(re.sub(r"[\d,]*\d", r"[\\d,]+", word) for word in words.split())
        text = re.sub(pattern, words, text)
    return text


def as_table(sessions: Sequence[Session]) -> str:
    """Return a program as a Markdown table with a row for each session."""
    rows = ["| session | notebooks and exercises |", "|---|---|"]
    for number, session in enumerate(sessions, 1):
        steps = [line.step for line in session if line.step]
        said = []
        for lesson, group in groupby(steps, lambda step: step.lesson):
            done = [s.part.exercise.number for s in group if s.part.exercise]
            said.append(f"{lesson.title} ({', '.join(done) or 'explained only'})")
        rows.append(f"| {number} | {'; '.join(said)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    PAGE.write_text(with_figures(with_programs(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
