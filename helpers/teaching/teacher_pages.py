"""Write a page for each exercise: the usual wrong answers, and the sentences about them.

`course teach OUT` calls this module. The wrong programs and their sentences are the exercise's known
mistakes. Because the mistakes are checked, each page shows the same verdicts that a learner would see. The
pages contain solutions, so they are only for teachers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from markupsafe import Markup

from helpers.checks.headings import Heading
from helpers.checks.mistakes import KnownMistake, readable_program
from helpers.course.build import BEGIN, END
from helpers.teaching.common_mistakes import common_mistakes
from helpers.teaching.lesson import Lesson, Part
from helpers.teaching.pages import render_page
from helpers.teaching.prose import code_html, to_html


@dataclass(frozen=True)
class WrongAnswer:
    """One usual wrong answer: the outcome of its check, the sentence about it, and the program."""

    title: str
    outcome: str
    words: Markup
    program: Markup


@dataclass(frozen=True)
class TeacherPage:
    """A teacher's information about one exercise."""

    heading: Heading
    task: Markup
    hints: tuple[Markup, ...]
    wrong: tuple[WrongAnswer, ...]
    solution: Markup

    @property
    def file(self) -> str:
        return f"{self.heading.number.replace('.', '-')}_{self.heading.name}.html"


def write_teacher_pages(lessons: Sequence[Lesson], out: Path) -> list[Path]:
    """Write a page for each exercise of the lessons, and index.html, into `out`. Return the files."""
    out.mkdir(parents=True, exist_ok=True)
    chapters = [
        (lesson, [_build_page(part) for part in lesson.parts if part.exercise])
        for lesson in lessons
    ]
    written = []
    for lesson, made in chapters:
        for each in made:
            written.append(out / each.file)
            written[-1].write_text(
                render_page("teacher.html", page=each, lesson=lesson), encoding="utf-8"
            )
    index = out / "index.html"
    index.write_text(render_page("teacher_index.html", chapters=chapters), encoding="utf-8")
    return [*written, index]


def _build_page(part: Part) -> TeacherPage:
    heading = part.exercise
    assert heading is not None
    task = [cell.source for cell in takewhile(lambda cell: not cell.is_code, part.cells)]
    solved = [_without_markers(cell.source) for cell in part.cells if BEGIN in cell.source]
    return TeacherPage(
        heading,
        Markup("\n").join(Markup(to_html(text)) for text in task),
        tuple(Markup(to_html(hint)) for hint in heading.hints),
        tuple(_render_wrong(mistake) for mistake in common_mistakes(heading)),
        Markup("\n").join(Markup(code_html(source)) for source in solved),
    )


def _render_wrong(mistake: KnownMistake) -> WrongAnswer:
    words, program = Markup(to_html(mistake.words)), Markup(code_html(readable_program(mistake)))
    return WrongAnswer(mistake.title, mistake.outcome.value, words, program)


def _without_markers(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if line.strip() not in (BEGIN, END))
