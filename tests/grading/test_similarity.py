"""Copies are listed whatever was renamed in them; answers that differ are not."""

from __future__ import annotations

import ast
from pathlib import Path

from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.similarity import fingerprint, overlap, similar_answers, write_answers
from tests.submission_files import FOLDER, read_samples

RIGHT = [
    s.source
    for s in read_samples(FOLDER / "05_collective_algorithms/ring_all_reduce.py")
    if s.right
]


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
    assert [(each.exercise, each.learners) for each in found] == [("ring_all_reduce", ("a", "b"))]
    assert found[0].share > 0.95


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
