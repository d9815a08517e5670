"""`course plan --hours H`: which notebooks and exercises fit into the time of a class, and what is left out.

Notebooks are chosen in the order of FIRST, first each with what is explained and its first exercises, then
with more exercises while there is time. What is chosen of a notebook is taught in the notebook's own order,
and a session may end between any two parts. Minutes are those of the headings; explanations are estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from helpers.room.lesson import Lesson, Part

BREAK = 10
"""Minutes."""
UNTIL_BREAK = 60
"""Minutes of work after which there is a break as soon as a piece of work ends."""
FIRST = (0, 2, 4, 8, 9, 12, 6, 7, 1, 18, 19, 11, 3, 5, 10, 13, 15, 14, 16, 17, 20, 23, 21, 22)
"""The notebooks, by what a class should see first if it cannot see all. Each can be taught with only those
before it; parallel training comes before what it is made of."""
AT_FIRST = 20
"""Minutes of exercises with which a notebook is chosen, before any gets more. At least one exercise."""
TOO_LATE = 10
"""Minutes before the end of a session in which no notebook is begun."""


@dataclass(frozen=True)
class Step:
    """A part of a notebook, taught or solved without a break."""

    lesson: Lesson
    part: Part

    @property
    def minutes(self) -> int:
        return self.part.minutes


@dataclass(frozen=True)
class Line:
    """One line of a session, from its minute `start` to its minute `end`. step: None for a break."""

    start: int
    end: int
    step: Step | None = None


@dataclass(frozen=True)
class Program:
    """sessions: each with its lines. left_out: notebooks. fewer: exercises left out of the others."""

    minutes: int
    sessions: tuple[tuple[Line, ...], ...]
    left_out: tuple[Lesson, ...]
    fewer: tuple[Part, ...]


def plan(lessons: Sequence[Lesson], hours: float, sessions: int) -> Program:
    """Choose what fits into `hours` hours, breaks included, in `sessions` sessions of equal length."""
    length = int(60 * hours) // sessions
    by_number = {int(lesson.number): lesson for lesson in lessons}
    order = [by_number[number] for number in FIRST if number in by_number]
    chosen: list[Step] = []

    def add(steps: list[Step]) -> bool:
        if _scheduled(_in_order([*chosen, *steps]), length, sessions) is None:
            return False
        chosen.extend(steps)
        return True

    for lesson in order:
        if not add([Step(lesson, part) for part in (*lesson.explained, *_first(lesson.core))]):
            break  # those after it may need it
    for lesson in order:
        if Step(lesson, lesson.explained[0]) in chosen:
            more = [part for part in lesson.core if Step(lesson, part) not in chosen]
            # an exercise may use the one before it
            next((part for part in more if not add([Step(lesson, part)])), None)
    scheduled = _scheduled(_in_order(chosen), length, sessions)
    assert scheduled is not None
    taught = {step.lesson.number for step in chosen}
    done = {step.part for step in chosen}
    return Program(
        length * sessions,
        scheduled,
        tuple(lesson for lesson in lessons if lesson.number not in taught),
        tuple(p for x in lessons if x.number in taught for p in x.core if p not in done),
    )


def _first(core: Sequence[Part]) -> list[Part]:
    """Return the exercises with which a notebook is chosen."""
    found: list[Part] = []
    for part in core:
        if found and sum(each.minutes for each in [*found, part]) > AT_FIRST:
            break
        found.append(part)
    return found


def _in_order(steps: Sequence[Step]) -> list[Step]:
    """Return steps in the course's order."""
    return sorted(steps, key=lambda s: (s.lesson.notebook, s.lesson.parts.index(s.part)))


def _scheduled(
    steps: Sequence[Step], length: int, sessions: int
) -> tuple[tuple[Line, ...], ...] | None:
    """Fill sessions of `length` minutes one after another; None where the steps do not fit."""
    filled: list[list[Line]] = [[]]
    since = 0
    lesson = None
    for step in steps:
        lines = filled[-1]
        now = lines[-1].end if lines else 0
        pause = BREAK if since >= UNTIL_BREAK else 0
        needed = step.minutes if step.lesson is lesson else max(step.minutes, TOO_LATE)
        lesson = step.lesson
        if now + pause + needed > length:
            filled.append([])
            lines, now, pause, since = filled[-1], 0, 0, 0
        if step.minutes > length or len(filled) > sessions:
            return None
        if pause:
            lines.append(Line(now, now + pause))
            now, since = now + pause, 0
        lines.append(Line(now, now + step.minutes, step))
        since += step.minutes
    return tuple(tuple(lines) for lines in filled)


def as_text(program: Program) -> str:
    """Return a program as text, with the clock of each session from 0:00."""
    lines = []
    for number, session in enumerate(program.sessions, 1):
        if len(program.sessions) > 1:
            lines += [f"Session {number}"]
        for words, group in groupby(session, _words):
            own = list(group)
            clock = f"{_clock(own[0].start):>5} to {_clock(own[-1].end):>5}"
            lines += [f"  {clock}  {words} {_which(own)}".rstrip()]
        lines += [""]
    lines += left_out(program)
    return "\n".join(lines)


def _words(line: Line) -> str:
    """Describe a line; the same for parts that are explained one after another."""
    if line.step is None:
        return "Break"
    heading = line.step.part.exercise
    if heading is None:
        return f"{line.step.lesson.title}: explain"
    return f"Exercise {heading.number}, {heading.title}"


def _which(lines: Sequence[Line]) -> str:
    """Return the first and the last heading of what is explained; "" for anything else."""
    parts = [line.step.part for line in lines if line.step and not line.step.part.exercise]
    titles = [f"“{part.title}”" for part in parts]
    return " to ".join(dict.fromkeys((titles[0], titles[-1]))) if titles else ""


def left_out(program: Program) -> list[str]:
    """Describe what a program has no time for."""
    lines = []
    if program.left_out:
        titles = ", ".join(lesson.title for lesson in program.left_out)
        lines.append(f"Left out, notebooks: {titles}.")
    if program.fewer:
        numbers = ", ".join(part.exercise.number for part in program.fewer if part.exercise)
        lines.append(f"Left out, exercises (good homework): {numbers}.")
    return [*lines, "Exercises marked further are optional and not in the program."]


def _clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02}"
