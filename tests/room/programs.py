"""Write the programs in docs/instructors.md again: `python -m tests.room.programs`."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from helpers.course.workspace import find_workspace
from helpers.room.lesson import lessons
from helpers.room.program import Program, left_out, plan

PAGE = Path(__file__).parents[2] / "docs" / "instructors.md"
PROGRAMS = (
    ("Half a day", 4, 1),
    ("One day", 7, 1),
    ("Two days", 14, 2),
    ("Five evenings", 15, 5),
    ("A semester: 14 times 90 minutes", 21, 14),
)
_BLOCK = re.compile(r"(?<=<!-- programs -->\n).*?(?=<!-- end of programs -->)", re.DOTALL)


def with_programs(text: str) -> str:
    """Return the text of the page with the programs as they are now."""
    known = lessons(find_workspace())
    parts = []
    for title, hours, sessions in PROGRAMS:
        program = plan(known, hours, sessions)
        command = f"course plan --hours {hours} --sessions {sessions}"
        said = "\n".join(
            line for line in left_out(program) if line.startswith("Left out, notebooks")
        )
        parts.append(f"### {title}\n\n`{command}`\n\n{as_table(program)}\n\n{said}\n")
    written = "\n" + "\n".join(parts) + "\n"
    return _BLOCK.sub(lambda _: written, text)


def as_table(program: Program) -> str:
    """Return a program as a Markdown table with a row for each notebook of each session."""
    rows = ["| session | notebook | exercises |", "|---|---|---|"]
    for number, session in enumerate(program.sessions, 1):
        steps = [line.step for line in session if line.step]
        for lesson, group in groupby(steps, lambda step: step.lesson):
            own = list(group)
            done = [step.part.exercise for step in own if step.part.exercise]
            numbers = ", ".join(heading.number for heading in done) or "explained only"
            rows.append(f"| {number} | {lesson.title} | {numbers} |")
    return "\n".join(rows)


if __name__ == "__main__":
    PAGE.write_text(with_programs(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
