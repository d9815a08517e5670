"""Test the short paths: their lines in the notebooks, and that their parts need no other parts."""

from __future__ import annotations

import ast
import builtins
import re

import pytest

from helpers.answers.magics import strip_magics
from helpers.answers.names import names_of
from helpers.course.build import learner_copy
from helpers.course.notebook_file import NotebookError, read_notebook, source_of
from helpers.course.path_lines import mark_parts, path_lines
from helpers.course.paths import EVERYTHING, LearningPath, Stop, paths
from helpers.course.workspace import find_workspace
from helpers.teaching.lesson import read_lesson

SHORT = [path for path in paths().values() if path.name != EVERYTHING]
each_stop = pytest.mark.parametrize(
    ("path", "at"),
    [(path, at) for path in SHORT for at in range(len(path.stops))],
    ids=lambda given: getattr(given, "name", given),
)


@each_stop
def test_path_line_lists_linked_parts(path: LearningPath, at: int) -> None:
    stop = path.stops[at]
    file = find_workspace().solutions / f"{stop.notebook}.ipynb"
    cells = learner_copy(read_notebook(file), file.name)["cells"]
    texts = [source_of(cell) for cell in cells if cell["cell_type"] == "markdown"]
    (line,) = [x for text in texts for x in text.splitlines() if f"*{path.title}*" in x]
    first = next(text for text in texts if re.search("^## ", text, re.MULTILINE))
    assert texts.index(first) == [line in text for text in texts].index(True) + 1
    by_id = {cell["id"]: source_of(cell) for cell in cells}
    links = re.findall(rf"\]\({stop.notebook}\.ipynb#cell-id=([^)]+)\)", line)
    for part, link in zip(stop.parts, links, strict=True):
        assert re.search(rf"^## (Exercise .*: )?{re.escape(part)}", by_id[link], re.MULTILINE)
    assert (f"The path presupposes {path.presupposes}." in line) == (at == 0)
    if at + 1 < len(path.stops):
        assert line.endswith(f"Continue in notebook {path.stops[at + 1].notebook[:2]}.")
    else:
        assert line.endswith(f"The path ends there. {path.sequel}".strip())
        pages = re.findall(r"`(docs/.+?)`", path.sequel)
        assert all((find_workspace().root / page).is_file() for page in pages)


@each_stop
def test_marks_sections_outside_path(path: LearningPath, at: int) -> None:
    stop = path.stops[at]
    file = find_workspace().solutions / f"{stop.notebook}.ipynb"
    cells = learner_copy(read_notebook(file), file.name)["cells"]
    text = "\n\n".join(source_of(cell) for cell in cells if cell["cell_type"] == "markdown")
    parts = re.findall(
        r"^## (?:Exercise \d+\.\d+: )?(.+?)(?: \(\d+ min, .*\))?\n\n(.*)$", text, re.MULTILINE
    )
    mark = f"*Not on the path {path.title}.*"
    assert all((below == mark) <= (title not in stop.parts) for title, below in parts)
    last = max(i for i, (title, _) in enumerate(parts) if title in stop.parts)
    assert all(below == mark for title, below in parts[:last] if title not in stop.parts)
    assert dict(parts).get("Recap", "") != mark


def test_notebooks_off_short_paths_lack_marks() -> None:
    cells = read_notebook(find_workspace().solutions / "16_context_parallel.ipynb")["cells"]
    assert mark_parts("16_context_parallel", cells) == {}


def test_error_mentions_nonexistent_part() -> None:
    cells = [{"cell_type": "markdown", "id": "a", "source": "# 02\n\nWords."}]
    with pytest.raises(NotebookError, match="02_blocking_p2p has no part 'One message'"):
        path_lines("02_blocking_p2p", cells)
    assert path_lines("03_nonblocking_p2p", cells) == {}


def test_stop_includes_only_named_optional_exercises() -> None:
    named = Stop("06_deadlocks", ("Find the rank that hangs, from flight records",))
    assert [each.name for each in named.exercises] == ["who_hangs"] and named.exercises[0].further
    whole = Stop("06_deadlocks").exercises
    assert whole and not any(each.further for each in whole)


@each_stop
def test_path_parts_define_all_used_names(path: LearningPath, at: int) -> None:
    stop = path.stops[at]
    solved = read_notebook(find_workspace().solutions / f"{stop.notebook}.ipynb")
    first, *parts = read_lesson(stop.notebook, solved).parts
    made, used = {*dir(builtins)}, set[str]()
    for part in [first, *(part for part in parts if stop.has(part.title))]:
        for source in (cell.source for cell in part.cells if cell.is_code):
            for statement in ast.parse(strip_magics(source)).body:
                names = names_of(statement)
                made |= names.binds | names.may_bind
                assert names.now <= made, f"{part.title}: {names.now - made}"
                used |= names.later
    assert used <= made, used - made
