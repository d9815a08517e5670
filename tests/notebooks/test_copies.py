"""The learner's copies are the solved notebooks without their solutions, and otherwise the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from helpers.course.build import BEGIN, EXERCISE_HEADING_PATTERN, KEEP_OUTPUT, learner_copy
from helpers.course.links import files_by_number
from helpers.course.notebook_file import cell_metadata, read_notebook, source_of
from helpers.course.workspace import find_workspace
from tests.notebooks.solved import (
    SOLVED,
    each_solved,
    is_exercise,
    read_solved,
    solution_texts,
)

REGION = re.compile(r"^[ ]*### BEGIN SOLUTION\n.*?^[ ]*### END SOLUTION\n?", re.DOTALL | re.M)
LINK = re.compile(r"\[((?:[Nn]otebook )?\d\d)\]\(\d\d_\w+\.ipynb\)")
PATH_LINE = re.compile(r"\n\nOn the path \*.*", re.DOTALL)
MARK = re.compile(r"\n\n\*Not on the path [^*]*\*")
STUB = re.compile(r'^[ ]*raise NotImplementedError\("(?P<title>Exercise [^"]*)"\)\n?', re.M)


def test_copies_correspond_to_solved_notebooks() -> None:
    copies = sorted(find_workspace().notebooks.glob("*.ipynb"))
    assert [path.name for path in copies] == [path.name for path in SOLVED], "`make notebooks`"


@each_solved
def test_copy_matches_build_output(path: Path) -> None:
    stored = read_notebook(find_workspace().notebooks / path.name)
    files = files_by_number(solved.name for solved in SOLVED)
    assert stored == learner_copy(read_notebook(path), path.name, files), "`make notebooks`"


@each_solved
def test_copy_differs_only_in_exercise_regions(path: Path) -> None:
    solved = read_solved(path)
    handed_out = read_notebook(find_workspace().notebooks / path.name)
    assert len(solved["cells"]) == len(handed_out["cells"])
    for theirs, ours in zip(handed_out["cells"], solved["cells"], strict=True):
        assert (theirs["id"], theirs["cell_type"]) == (ours["id"], ours["cell_type"])
        assert theirs["metadata"] == cell_metadata(ours)
        if is_exercise(ours):
            assert STUB.sub("", source_of(theirs)) == REGION.sub("", source_of(ours)), ours["id"]
        else:
            words = LINK.sub(r"\1", source_of(theirs))
            words = MARK.sub("", PATH_LINE.sub("", words))
            assert words == source_of(ours), ours["id"]


@each_solved
def test_copy_contains_no_output_or_solution(path: Path) -> None:
    handed_out = read_notebook(find_workspace().notebooks / path.name)
    text = "\n".join(source_of(cell) for cell in handed_out["cells"])
    for cell in handed_out["cells"]:
        if cell["cell_type"] == "code" and KEEP_OUTPUT not in cell["metadata"].get("tags", ()):
            assert cell["outputs"] == [] and cell["execution_count"] is None, cell["id"]
    assert BEGIN not in text
    for cell in read_notebook(path)["cells"]:
        for solution in solution_texts(source_of(cell)):
            assert solution.strip() not in text, cell["id"]


@each_solved
def test_stub_mentions_preceding_exercise(path: Path) -> None:
    title = ""
    for ours, theirs in zip(
        read_notebook(path)["cells"],
        read_notebook(find_workspace().notebooks / path.name)["cells"],
        strict=True,
    ):
        headings = EXERCISE_HEADING_PATTERN.findall(source_of(theirs))
        title = headings[-1] if headings and theirs["cell_type"] == "markdown" else title
        if not is_exercise(ours):
            continue
        stubs = STUB.findall(source_of(theirs))
        assert stubs and set(stubs) == {title}, ours["id"]
        ast.parse(source_of(theirs))  # the learner's cell is valid Python
