"""The class's notebooks; no learner's row depends on another's submission."""

from __future__ import annotations

import pytest

from helpers.grading.record import Record
from tests.grading.reports.builders import course_of, exercise, record, results

CLASS = [
    record(name, exercise(), notebook="02_blocking_p2p", file=f"{name}/02.ipynb")
    for name in ("ada", "bob", "cleo", "dora", "eve")
]
STRAY = record("eve", exercise("count_votes"), notebook="00_start_here", file="eve/00.ipynb")


def rows(records: list[Record], named: tuple[str, ...] = ()) -> dict[str, tuple[float, float]]:
    return {s.learner: (s.points, s.out_of) for s in course_of(records, "", named).standings}


def test_stray_notebook_changes_no_other_row() -> None:
    course = course_of([*CLASS, STRAY], "")
    assert course.extra_notebooks == ("00_start_here",)
    assert rows([*CLASS, STRAY]) == rows(CLASS)
    assert not any(standing.missing for standing in course.standings)
    (eve,) = [standing for standing in course.standings if standing.learner == "eve"]
    assert [each.file for each in eve.spare] == ["eve/00.ipynb"]


@pytest.mark.parametrize(("count", "counts"), [(2, True), (3, False), (4, False), (5, False)])
def test_single_learner_adds_no_class_notebook(count: int, counts: bool) -> None:
    stray = record(CLASS[0].learner, exercise("count_votes"), notebook="00_start_here", file="00")
    assert ("00_start_here" in course_of([*CLASS[:count], stray], "").points_by_notebook) is counts


def test_gradescope_counts_only_named_notebooks() -> None:
    own = record("eve", exercise(), notebook="02_blocking_p2p", file="eve/02.ipynb")
    assert results([own, STRAY])["score"] == 15.0
    told = results([own, STRAY], ["02_blocking_p2p", "03_nonblocking_p2p"])
    assert told["score"] == 10.0
    (look,) = [test for test in told["tests"] if test.get("visibility") == "hidden"]
    assert "eve/00.ipynb: another notebook: Few learners attempted it" in look["output"]


def test_instructor_can_choose_class_notebooks() -> None:
    course = course_of([*CLASS, STRAY], "", ("00_start_here", "02_blocking_p2p"))
    assert not course.extra_notebooks and list(course.points_by_notebook) == [
        "00_start_here",
        "02_blocking_p2p",
    ]
    assert course_of([*CLASS, STRAY], "", ("00_start_here",)).extra_notebooks == (
        "02_blocking_p2p",
    )
    assert rows([*CLASS, STRAY], ("00_start_here",))["ada"] == (0.0, 5.0)


@pytest.mark.parametrize("count", range(1, 4))
def test_gradescope_counts_best_copy(count: int) -> None:
    best = record("eve", exercise(), notebook="02_blocking_p2p", file="eve/a.ipynb")
    copies = [
        record(
            "eve", exercise(outcome="wrong", points=2.0), notebook="02_blocking_p2p", file=f"{n}"
        )
        for n in range(count)
    ]
    told = results([*copies, best])
    assert told["score"] == 10.0
    (look,) = [test for test in told["tests"] if test.get("visibility") == "hidden"]
    assert look["output"].count("further copy: The same notebook") == count
