"""Records for the tests of reports: a plausible class, and records in which every text is hostile."""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

from helpers.check_result import CaseRecord, Row
from helpers.checks.registry import exercises
from helpers.grading.points.policy import Policy
from helpers.grading.record import ExerciseRecord, Protection, Record, Status
from helpers.grading.reports import gradescope
from helpers.grading.reports.standing import Course
from helpers.grading.reports.standing import course_of as weighted_course
from helpers.views.picture import Picture, new_figure

PROTECTION = Protection(
    "bubblewrap",
    ("the network", "files of other learners", "processes that outlive an exercise"),
    ("timing of the machine's caches",),
)
VERSIONS = {"python": "3.11.7", "torch": "2.13.0", "course": "0.1.0"}
NAMES = ("Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Leslie Lamport")
SECRET_INPUT = "tensor([271828., 31415.])"
"""A text in hidden cases that must not appear in any report."""

DEADLOCK = (
    "the ranks wait for each other\nrank 0 waits for rank 1 in recv, line 4\n"
    "rank 1 waits for rank 0 in recv, line 4"
)
LOOK = "Both ranks call `recv` first. Let rank 0 call `send` and then `recv`."

EQUAL = Policy(weights="points", further="counts")
"""A policy that counts each exercise with its check's points, so that sums are easy to read."""


def course_of(records: Sequence[Record], title: str, named: Sequence[str] = ()) -> Course:
    """Sort records into a class, without weights."""
    return weighted_course(records, title, named, EQUAL)


results = partial(gradescope.gradescope_results, policy=EQUAL)


@cache
def picture(width: float = 6.0) -> str:
    """Draw a real PNG and return it as base64."""
    figure = new_figure(width, 2.0)
    axes = figure.subplots()
    axes.barh([0, 1], [0.4, 0.9], left=[0.1, 0.0])
    axes.set_yticks([0, 1], ["rank 0", "rank 1"])
    axes.invert_yaxis()
    axes.set_xlabel("time (ms)")
    return base64.b64encode(Picture(figure, "")._repr_png_()).decode()


def case(
    label: str = "2 ranks, 5 elements", outcome: str = "passed", **given: object
) -> CaseRecord:
    credit = float(outcome == "passed")
    return replace(CaseRecord(label=label, hidden=False, outcome=outcome, credit=credit), **given)  # type: ignore[arg-type]


def wrong_case(label: str = "3 ranks, 5 elements") -> CaseRecord:
    rows = (
        Row(0, "tensor([1., 2.])", "tensor([6., 8.])", "tensor([6., 8.])", ""),
        Row(1, "tensor([2., 2.])", "tensor([6., 8.])", "tensor([2., 2.])", "element 0 differs"),
        Row(2, "tensor([3., 4.])", "tensor([6., 8.])", "None", "nothing was returned"),
    )
    advice = "Rank 1 kept its own `x`: is the sum written where you return it from?"
    return case(
        label, "wrong", rows=rows, broken=("3 messages of 8 bytes, but 2 suffice",), advice=advice
    )


def hidden_case(outcome: str = "wrong", label: str = "5 ranks, 7 elements") -> CaseRecord:
    """Make a hidden case with more content than usual, which no report may show."""
    row = Row(0, SECRET_INPUT, SECRET_INPUT, SECRET_INPUT, SECRET_INPUT)
    said = {"message": SECRET_INPUT, "advice": SECRET_INPUT, "broken": (SECRET_INPUT,)}
    return case(label, outcome, hidden=True, rows=(row,), **said)


def exercise(name: str = "ping_pong", outcome: str = "passed", **given: object) -> ExerciseRecord:
    """Make an exercise of the course with this outcome."""
    known = exercises()[name]
    cases = {
        "passed": (case(), hidden_case("passed")),
        "wrong": (case(), wrong_case(), hidden_case("wrong")),
        "deadlocked": (case(outcome="deadlocked", message=DEADLOCK, advice=LOOK),),
    }.get(outcome, ())
    made = ExerciseRecord(
        name=name,
        number=known.number,
        heading=known.heading,
        outcome=outcome,
        points=known.points * {"passed": 1.0, "wrong": 0.4}.get(outcome, 0.0),
        out_of=known.points,
        cases=cases,
        seconds=0.21,
    )
    return replace(made, **given)  # type: ignore[arg-type]


def record(learner: str = "Ada Lovelace", *tries: ExerciseRecord, **given: object) -> Record:
    made = Record(
        learner=learner,
        file=f"{learner}/02_blocking_p2p.ipynb",
        notebook="02_blocking_p2p",
        status=Status.GRADED,
        sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        exercises=tries or (exercise(),),
        protection=PROTECTION,
        versions=VERSIONS,
        seconds=1.5,
    )
    return replace(made, **given)  # type: ignore[arg-type]


def fault(name: str = "token_ring") -> ExerciseRecord:
    message = "the reference ended with signal SIGKILL as well"
    return exercise(name, "harness fault", message=message, points=0.0, out_of=0.0)


def unreadable(learner: str = "Edsger Dijkstra") -> Record:
    message = "line 3, column 7: this is not valid JSON"
    return record(learner, exercises=(), status=Status.UNREADABLE, notebook="", message=message)


def a_class(learners: int = 30, seed: int = 5) -> list[Record]:
    """Make a class over two notebooks, with every possible outcome."""
    draw = random.Random(seed)
    names = [
        each
        for each in exercises().values()
        if each.notebook in ("02_blocking_p2p", "05_collective_algorithms")
    ]
    made = []
    for at in range(learners):
        skill = draw.random() ** 0.5
        who = NAMES[at] if at < len(NAMES) else f"Learner {at:03d}"
        for notebook in ("02_blocking_p2p", "05_collective_algorithms"):
            if notebook == "05_collective_algorithms" and at % 7 == 3:
                continue
            tries = tuple(
                exercise(each.name, _outcome(draw, skill, each.difficulty), picture=picture())
                for each in names
                if each.notebook == notebook
            )
            file = f"{who}/{notebook}.ipynb"
            made.append(record(who, *tries, notebook=notebook, file=file))
    made[4] = replace(
        made[4], exercises=(*made[4].exercises[:-1], fault(made[4].exercises[-1].name))
    )
    flag = "traffic does not match: 2 messages recorded, 5 seen from outside: look"
    flagged = replace(
        made[8].exercises[1],
        flags=(flag,),
        notes=("the name `token_ring` was found twice; the last counts",),
    )
    made[8] = replace(made[8], exercises=(made[8].exercises[0], flagged, *made[8].exercises[2:]))
    return [*made, unreadable("Zoe Unreadable")]


def _outcome(draw: random.Random, skill: float, difficulty: int) -> str:
    if draw.random() < skill * 1.25 - difficulty * 0.06:
        return "passed"
    others = ("wrong", "deadlocked", "not attempted", "crashed", "timed out", "forbidden call")
    return draw.choices(others, (5, 3, 3, 1, 1, 1))[0]
