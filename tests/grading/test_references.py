"""Inside the sandbox every reference solution gets all points and no flags.

`tests/notebooks/test_stored_outputs.py` checks that each gets all points in its notebook. So two notebooks
are enough for `make test`: the first one, and one of local functions and modules. `make test-all` adds one
of each other kind of exercise.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.grading.grader import Grader
from helpers.grading.record import Status
from helpers.grading.submissions import Job
from tests.grading.conftest import SOLUTIONS

SHORT = ("00", "07")
EXTENDED = ("02", "06", "09", "11", "13", "17", "22")
PATHS = [
    pytest.param(
        path,
        id=path.stem,
        marks=()
        if path.name.startswith(SHORT)
        else pytest.mark.extended
        if path.name.startswith(EXTENDED)
        else pytest.mark.prove,
    )
    for path in sorted(SOLUTIONS.glob("*.ipynb"))
]


@pytest.mark.timeout(600)  # 23 takes minutes on a busy machine
@pytest.mark.parametrize("path", PATHS)
def test_solved_notebook_gets_all_points(grader: Grader, path: Path) -> None:
    record = grader.grade(Job("anna", path, path.name))
    assert record.status is Status.GRADED, record.message
    told = [
        f"{each.name}: {each.outcome}, {each.points} of {each.out_of} {each.message} {each.flags} "
        + " ".join(case.message for case in each.cases)
        for each in record.exercises
        if each.outcome != "passed" or each.points != each.out_of or each.flags
    ]
    assert not told, "\n".join(told)
