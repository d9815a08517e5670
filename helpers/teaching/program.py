"""Divide a path into the sessions of a class, with clock times and breaks.

    path + lessons -> steps -> sessions -> text

`course sessions --path ddp` prints this text. All parts of the path are taught in order, and a session may
end between any two parts. The minutes of an exercise are in its heading, while those of other parts are
estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from helpers.course.paths import LearningPath
from helpers.teaching.lesson import Lesson, Part

BREAK_MINUTES = 10
"""Length of a break in minutes."""
WORK_BEFORE_BREAK_MINUTES = 60
"""Minutes of work after which a break begins at the end of the current step."""
NO_NEW_NOTEBOOK_MINUTES = 10
"""Minutes at the end of a session during which no new notebook is started."""


@dataclass(frozen=True)
class Step:
    """A part of a notebook, taught or solved without a break."""

    lesson: Lesson
    part: Part

    @property
    def minutes(self) -> int:
        return self.part.minutes


@dataclass(frozen=True)
class ProgramLine:
    """One line of a session, from minute `start` to minute `end`. step: None for a break."""

    start: int
    end: int
    step: Step | None = None


Session = tuple[ProgramLine, ...]


def divide_path(lessons: Sequence[Lesson], path: LearningPath, minutes: int) -> tuple[Session, ...]:
    """Divide a path into sessions of at most `minutes` minutes, including breaks.

    Raise ValueError if a part of the path is longer than a session.
    """
    sessions: list[list[ProgramLine]] = [[]]
    since = 0
    lesson = None
    for step in steps_of_path(lessons, path):
        if step.minutes > minutes:
            raise ValueError(f"The part “{step.part.title}” takes {step.minutes} minutes.")
        lines = sessions[-1]
        now = lines[-1].end if lines else 0
        pause = BREAK_MINUTES if since >= WORK_BEFORE_BREAK_MINUTES else 0
        needed = (
            step.minutes if step.lesson is lesson else max(step.minutes, NO_NEW_NOTEBOOK_MINUTES)
        )
        lesson = step.lesson
        if lines and now + pause + needed > minutes:
            sessions.append([])
            lines, now, pause, since = sessions[-1], 0, 0, 0
        if pause:
            lines.append(ProgramLine(now, now + pause))
            now, since = now + pause, 0
        lines.append(ProgramLine(now, now + step.minutes, step))
        since += step.minutes
    return tuple(tuple(lines) for lines in sessions)


def steps_of_path(lessons: Sequence[Lesson], path: LearningPath) -> list[Step]:
    """Return the parts of a path: its explanations and exercises."""
    known = {lesson.notebook: lesson for lesson in lessons}
    return [
        Step(known[stop.notebook], part)
        for stop in path.stops
        for part in known[stop.notebook].parts
        if part.is_taught and stop.has(part.title, further=part.is_optional)
    ]


def format_program(path: LearningPath, sessions: Sequence[Session]) -> str:
    """Return a program as text, with each session's clock starting at 0:00."""
    lines = [path.title, path.goal, ""]
    for number, session in enumerate(sessions, 1):
        if len(sessions) > 1:
            lines += [f"Session {number}"]
        for words, group in groupby(session, _describe_line):
            own = list(group)
            clock = f"{_clock(own[0].start):>5} to {_clock(own[-1].end):>5}"
            lines += [f"  {clock}  {words} {_heading_range(own)}".rstrip()]
        lines += [""]
    return "\n".join([*lines, f"At the end: {path.end}"])


def _describe_line(line: ProgramLine) -> str:
    """Return a description of a line, which is the same for consecutive explanations of one notebook."""
    if line.step is None:
        return "Break"
    heading = line.step.part.exercise
    if heading is None:
        return f"{line.step.lesson.title}: explain"
    return f"Exercise {heading.number}, {heading.title}"


def _heading_range(lines: Sequence[ProgramLine]) -> str:
    """Return the first and the last heading of explained parts, or "" for other lines."""
    parts = [line.step.part for line in lines if line.step and not line.step.part.exercise]
    titles = [f"“{part.title}”" for part in parts]
    return " to ".join(dict.fromkeys((titles[0], titles[-1]))) if titles else ""


def _clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02}"
