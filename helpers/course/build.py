'''Make the learner's copy of a notebook by transforming only the text of the solved notebook.

`make notebooks` calls `build`; a test calls it again to check that notebooks/ is up to date.

    solutions/NN_topic.ipynb  --learner_copy-->  notebooks/NN_topic.ipynb

An exercise is a function or method with its solution between two marker lines:

    def ring_all_reduce(...):                    def ring_all_reduce(...):
        """Docstring, kept."""                       """Docstring, kept."""
        ### BEGIN SOLUTION               becomes     raise NotImplementedError("Exercise 5.3: ...")
        ...
        ### END SOLUTION

The exercise's number and title are taken from the last heading above it,
`## Exercise 5.3: Ring all-reduce (15 min, ●●●○○)`.
'''

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.course.links import files_by_number, link_notebooks
from helpers.course.notebook_file import (
    Notebook,
    NotebookError,
    as_lines,
    cell_metadata,
    check_cell_ids,
    notebook_metadata,
    read_notebook,
    source_of,
    write_notebook,
)
from helpers.course.path_lines import mark_parts, path_lines

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
KEEP_OUTPUT = "keep_output"

EXERCISE_HEADING_PATTERN = re.compile(
    r"^#+[ ]+(?P<title>Exercise[ ]\d+\.\d+:[ ]*\S.*?)"
    r"(?:[ ]+\([^()]*\bmin\b[^()]*\))?[ ]*$",  # the time and the difficulty, which the stub omits
    re.MULTILINE,
)


@dataclass(frozen=True)
class Region:
    """The lines of one solution, counted from 1, including both markers."""

    begin: int
    end: int
    indent: str

    def holds(self, line: int) -> bool:
        return self.begin <= line <= self.end


class RegionError(Exception):
    """A cell has wrong solution regions; the message describes the problem."""


def build(solutions_dir: Path, notebooks_dir: Path) -> list[Path]:
    """Make the learner's copy of every solved notebook, and remove copies without a source.

    Nothing is written if any notebook has an error (NotebookError). Returns the copies' paths.
    """
    copies: dict[Path, Notebook] = {}
    sources = sorted(solutions_dir.glob("*.ipynb"))
    files = files_by_number(source.name for source in sources)
    for source in sources:
        copies[notebooks_dir / source.name] = learner_copy(
            read_notebook(source), source.name, files
        )
    notebooks_dir.mkdir(parents=True, exist_ok=True)
    for path, notebook in copies.items():
        write_notebook(path, notebook)
    for path in notebooks_dir.glob("*.ipynb"):
        if path not in copies:
            path.unlink()
    return list(copies)


def learner_copy(
    notebook: Notebook, name: str = "notebook", files: Mapping[str, str] | None = None
) -> Notebook:
    """Return the notebook with stubs instead of solutions, with lines about its paths, and without outputs.

    files: {number: file} of all notebooks, for links in the text. A cell tagged `keep_output` keeps its
    output, for example a picture that readers see before running a cell.
    """
    check_cell_ids(notebook, name)
    cells = []
    title = ""
    lines = path_lines(name.removesuffix(".ipynb"), notebook["cells"])
    marked = mark_parts(name.removesuffix(".ipynb"), notebook["cells"])
    for number, cell in enumerate(notebook["cells"], start=1):
        source = source_of(cell)
        if cell["cell_type"] == "markdown":
            title = _last_exercise_title(source) or title
            source = marked.get(cell["id"], source)
            source += f"\n\n{lines[cell['id']]}" if cell["id"] in lines else ""
            source = link_notebooks(
                source, {n: file for n, file in (files or {}).items() if file != name}
            )
        if cell["cell_type"] == "code":
            try:
                source = _replace_solutions(source, title)
            except RegionError as error:
                raise NotebookError(f"{name}, cell {number}: {error}") from None
        cells.append(_blank_cell(cell, source))
    return {**notebook, "cells": cells, "metadata": notebook_metadata()}


def _last_exercise_title(markdown: str) -> str | None:
    titles = EXERCISE_HEADING_PATTERN.findall(markdown)
    return titles[-1] if titles else None


def _blank_cell(cell: Notebook, source: str) -> Notebook:
    blank = {**cell, "source": as_lines(source), "metadata": cell_metadata(cell)}
    if cell["cell_type"] == "code" and KEEP_OUTPUT not in cell["metadata"].get("tags", ()):
        blank |= {"outputs": [], "execution_count": None}
    return blank


def _replace_solutions(source: str, title: str) -> str:
    regions = list(_regions(source))
    if not regions:
        return source
    if not title:
        raise RegionError(
            "there is no exercise heading above this solution. Write a heading such as '## Exercise "
            "5.3: Ring all-reduce (15 min, ●●●○○)'."
        )
    _check_inside_functions(source, regions)
    stubbed = _replace_regions(source, regions, title)
    try:
        ast.parse(stubbed)
    except SyntaxError as error:
        raise RegionError(
            f"what is left without the solution is not Python (line {error.lineno}: {error.msg})."
            " Put whole statements of one block between the markers."
        ) from None
    return stubbed


def _regions(source: str) -> Iterator[Region]:
    begin: tuple[int, str] | None = None
    for number, line in enumerate(source.splitlines(), start=1):
        text = line.strip()
        if text == BEGIN:
            if begin:
                raise RegionError(f"line {number}: a second '{BEGIN}' before '{END}'.")
            begin = number, line[: len(line) - len(line.lstrip())]
        elif text == END:
            if not begin:
                raise RegionError(f"line {number}: '{END}' without '{BEGIN}'.")
            yield Region(begin[0], number, begin[1])
            begin = None
        elif re.search(r"#\s*(BEGIN|END)\s+SOLUTION", text, re.IGNORECASE):
            # If a marker had a typo, the solution would be copied into the learner's notebook.
            raise RegionError(f"line {number}: write '{BEGIN}' and '{END}' alone on their lines.")
    if begin:
        raise RegionError(f"line {begin[0]}: '{BEGIN}' without '{END}'.")


def _check_inside_functions(source: str, regions: list[Region]) -> None:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise RegionError(
            f"a cell with a solution must be plain Python, without magics"
            f" (line {error.lineno}: {error.msg})."
        ) from None
    inside = dict.fromkeys(regions, 0)
    for statement, in_function in _walk_statements(tree, in_function=False):
        for region in regions:
            if region.holds(statement.lineno):
                if not in_function:
                    raise RegionError(
                        f"line {region.begin}: the solution is not inside a function."
                    )
                inside[region] += 1
    for region, count in inside.items():
        if not count:
            raise RegionError(f"line {region.begin}: no statement between the markers.")


def _walk_statements(parent: ast.AST, *, in_function: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield every statement, and whether the innermost function or class around it is a function."""
    for child in ast.iter_child_nodes(parent):
        inside = in_function
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = child in parent.body
        elif isinstance(parent, ast.ClassDef):
            inside = False
        if isinstance(child, ast.stmt):
            yield child, inside
        yield from _walk_statements(child, in_function=inside)


def _replace_regions(source: str, regions: list[Region], title: str) -> str:
    # For any title on one line, JSON's quoting is the same as Python's.
    stub = f"raise NotImplementedError({json.dumps(title, ensure_ascii=False)})"
    starts = {region.begin: region for region in regions}
    lines = []
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        if number in starts:
            lines.append(f"{starts[number].indent}{stub}\n")
        elif not any(region.holds(number) for region in regions):
            lines.append(line)
    stubbed = "".join(lines)
    return stubbed if source.endswith("\n") else stubbed.removesuffix("\n")
