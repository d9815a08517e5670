"""Write one exercise for nbgrader and for otter-grader, with the same answer and test, for `grading_peers`.

nbgrader: metadata on the solution cell and the test cell (its documentation, "Creating and grading
assignments"). otter: raw cells that delimit question, solution and tests, the test is a function that
receives names of the notebook (its documentation, "Notebook Format", exception-based test cells).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.grading.notebooks import IMPORTS, RIGHT, WRONG

ASSIGNMENT = "exercise"
Cell = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """An exercise, two answers to it, and its test.

    before, after: cells around the answer. test: the asserts that nbgrader and otter run instead of our
    checks. names: the names of the notebook that the asserts use.
    """

    what: str
    exercise: str
    right: str
    wrong: str
    test: str
    names: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


_NAMES = "layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait"
TRAFFIC = Trial(
    what="a plain function (nbgrader, otter: five asserts)",
    exercise="step_traffic",
    right=f"def step_traffic({_NAMES}):\n    n = sum(layers)\n"
    "    gathered = microbatches * (1 + reshard) * n // ranks * param_bytes\n"
    "    scattered = (1 if wait else microbatches) * n * reduce_bytes\n"
    "    return gathered, scattered, n * reduce_bytes if wait else n // ranks * 4",
    wrong=f"def step_traffic({_NAMES}):\n    return 0, 0, 0",
    test="\n".join(
        f"assert step_traffic([64, 32], 4, {reshard}, {param}, {reduce}, 2, {wait}) == {expected}"
        for reshard, param, reduce, wait, expected in (
            (True, 4, 4, False, (384, 768, 96)),
            (False, 4, 4, False, (192, 768, 96)),
            (True, 2, 4, True, (192, 384, 384)),
            (False, 2, 2, True, (96, 192, 192)),
            (True, 2, 2, False, (192, 384, 96)),
        )
    ),
    names="step_traffic",
)
PING_PONG = Trial(
    what="a function on ranks (nbgrader, otter: our check)",
    exercise="ping_pong",
    right=RIGHT.strip(),
    wrong=WRONG.strip(),
    test="assert check(ping_pong).points == 10",
    names="check, ping_pong",
    before=(IMPORTS, "from helpers import check"),
    after=("result = check(ping_pong)\nresult",),
)


def nbgrader_source(trial: Trial, points: int) -> Cell:
    """Return the instructor's notebook for `nbgrader generate_assignment`."""
    return _notebook(
        *map(_code, trial.before),
        _code(_solved(trial), nbgrader=_mark("answer", solution=True)),
        *map(_code, trial.after),
        _code(trial.test, nbgrader={**_mark("points", grade=True, locked=True), "points": points}),
    )


def otter_master(trial: Trial, points: int) -> Cell:
    """Return the instructor's notebook for `otter assign`."""
    test = "\n    ".join([f"def test_answer({trial.names}):", *trial.test.splitlines()])
    return _notebook(
        _raw(
            "# ASSIGNMENT CONFIG\nexport_cell: false\ngenerate: true\ntests:\n    ok_format: false"
        ),
        *map(_code, trial.before),
        _raw(f"# BEGIN QUESTION\nname: {trial.exercise}\npoints: {points}"),
        _raw("# BEGIN SOLUTION"),
        _code(_solved(trial)),
        _raw("# END SOLUTION"),
        _raw("# BEGIN TESTS"),
        _code(test),
        _raw("# END TESTS"),
        _raw("# END QUESTION"),
        *map(_code, trial.after),
    )


def answered(released: Cell, trial: Trial, answer: str) -> Cell:
    """Return a learner's copy of a released notebook, with the answer in place of the stub."""
    stub = f"def {trial.exercise}("
    cells = [
        {**cell, "source": answer} if "".join(cell["source"]).startswith(stub) else cell
        for cell in released["cells"]
    ]
    assert cells != released["cells"], f"{trial.exercise} has no stub"
    return {**released, "cells": cells}


def _solved(trial: Trial) -> str:
    """Mark the right answer's body as the solution, by the markers that both tools know."""
    head, _, body = trial.right.partition("\n")
    return f"{head}\n    # BEGIN SOLUTION\n{body}\n    # END SOLUTION"


def _mark(
    grade_id: str, *, solution: bool = False, grade: bool = False, locked: bool = False
) -> Cell:
    mark = {"grade_id": grade_id, "solution": solution, "grade": grade, "locked": locked}
    return {"schema_version": 3, "task": False, **mark}


def _code(source: str, **metadata: Cell) -> Cell:
    cell: Cell = {"cell_type": "code", "metadata": metadata, "source": source}
    return {**cell, "outputs": [], "execution_count": None}


def _raw(source: str) -> Cell:
    return {"cell_type": "raw", "metadata": {}, "source": source}


def _notebook(*cells: Cell) -> Cell:
    named = [{**cell, "id": f"c{number}"} for number, cell in enumerate(cells)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": named, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
