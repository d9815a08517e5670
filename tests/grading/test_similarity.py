"""Copies are listed whatever was renamed in them; answers that differ are not."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.references import solutions_here
from helpers.grading.similarity import (
    fingerprint,
    overlap,
    reference_answers,
    similar_answers,
    write_answers,
)
from tests.submission_files import samples_of

RIGHT = [s.source for s in samples_of("ring_all_reduce") if s.right]


def record(learner: str, answer: str) -> Record:
    exercise = ExerciseRecord("ring_all_reduce", "5.3", "Ring", "passed", 10, 10, answer=answer)
    return Record(learner, "x.ipynb", "05", Status.GRADED, exercises=(exercise,))


def disguised(source: str) -> str:
    """Rename what the author named, add comments and a docstring, change the layout."""
    tree = ast.parse(source)
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in own:
            node.id = f"my_{node.id}"
    return "# all my own work\n\n" + ast.unparse(tree).replace("    ", "        ")


def test_a_copy_with_other_names_is_listed() -> None:
    first, second = RIGHT[0], RIGHT[1]
    found = similar_answers(
        [record("a", first), record("b", disguised(first)), record("c", second)]
    )
    (pair,) = found
    assert pair.learners == ("a", "b") and pair.alike[0].exercise == "ring_all_reduce"
    assert pair.alike[0].share > 0.95 and pair.alike[0].learners == 2


def test_what_is_like_the_reference_or_not_attempted_is_not() -> None:
    first = RIGHT[0]
    pair = [record("a", first), record("b", disguised(first))]
    assert similar_answers(pair) and not similar_answers(pair, {"ring_all_reduce": first})
    blank = [
        replace(x, exercises=(replace(x.exercises[0], outcome="not attempted"),)) for x in pair
    ]
    assert not similar_answers(blank)


def test_the_rarest_pair_comes_first() -> None:
    common, rare = RIGHT[0], RIGHT[1]
    records = [record(name, common) for name in "abc"] + [record(name, rare) for name in "de"]
    found = similar_answers(records)
    assert [each.learners for each in found] == [("d", "e"), ("a", "b"), ("a", "c"), ("b", "c")]
    assert [each.alike[0].learners for each in found] == [2, 3, 3, 3]


def test_references_are_those_of_the_solved_notebooks() -> None:
    found = reference_answers(["02_blocking_p2p"], solutions_here())
    assert "def ping_pong" in found["ping_pong"] and len(found) == 5
    assert not reference_answers(["02_blocking_p2p"], None)


def test_different_right_answers_are_not() -> None:
    for one in RIGHT:
        for other in RIGHT:
            if one is not other:
                assert overlap(fingerprint(one), fingerprint(other)) < 0.9


def test_answers_lie_where_other_tools_take_them(tmp_path: Path) -> None:
    write_answers([record("../../etc/passwd", RIGHT[0]), record("b", "not python (")], tmp_path)
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    assert path.relative_to(tmp_path).parts[:2] == ("answers", "ring_all_reduce")
    assert "def ring_all_reduce" in path.read_text()
