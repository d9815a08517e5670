"""`make site`: the whole course as static pages, to look through before installing anything.

    solutions/ -> run -> sources as handed out, outputs of the run -> one page a notebook -> index.html

Players and explorers are plain HTML with a script of their own, so they work there too, without a server.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter

from helpers.checks.headings import headings
from helpers.course.build import KEEP_OUTPUT, learner_copy
from helpers.course.home import part_of
from helpers.course.links import numbered
from helpers.course.notebook_file import Notebook, read_notebook, source_of
from helpers.course.outputs import executed
from helpers.course.page import page

_NOTEBOOK = re.compile(r'href="(\d\d_\w+)\.ipynb(#[^"]*)?"')


@dataclass(frozen=True)
class _Page:
    """One notebook in the list. minutes: of its exercises."""

    file: str
    title: str
    part: str
    exercises: int
    minutes: int


def build_site(
    solutions: Path, out: Path, names: tuple[str, ...] = (), *, run: bool = True
) -> list[Path]:
    """Write a page for each solved notebook, or those named by number, and index.html. Return the files.

    Exercises appear as stubs, as learners get them. run: run the notebooks first, so that timelines play;
    otherwise outputs are the still ones that are stored.
    """
    out.mkdir(parents=True, exist_ok=True)
    sources = sorted(solutions.glob("*.ipynb"))
    files = numbered(source.name for source in sources)
    exporter = HTMLExporter(template_name="lab", exclude_output_prompt=True)
    written, pages, opening = [], [], ""
    for source in sources:
        if names and source.stem[:2] not in names:
            continue
        solved = read_notebook(source)
        solved = executed(solved, source.name, live=True) if run else solved
        notebook = as_shown(solved, source.name, files)
        body, _ = exporter.from_notebook_node(nbformat.reads(json.dumps(notebook), as_version=4))
        written.append(_written(out / f"{source.stem}.html", _NOTEBOOK.sub(_to_page, body)))
        pages.append(_page(source.stem, notebook))
        opening = opening or _opening(notebook)
    index = page("site.html", pages=pages, opening=opening)
    return [*written, _written(out / "index.html", index)]


def as_shown(solved: Notebook, name: str, files: dict[str, str]) -> Notebook:
    """Return the learner's copy with the outputs of the solved notebook."""
    shown = learner_copy(solved, name, files)
    for copy, original in zip(shown["cells"], solved["cells"], strict=True):
        if copy["cell_type"] == "code":
            copy["outputs"] = original["outputs"]
    return shown


def _to_page(match: re.Match[str]) -> str:
    return f'href="{match[1]}.html{match[2] or ""}"'


def _page(stem: str, notebook: Notebook) -> _Page:
    title = source_of(notebook["cells"][0]).partition("\n")[0].removeprefix("# ")
    own = [heading for heading in headings().values() if heading.notebook == stem]
    minutes = sum(heading.minutes for heading in own)
    return _Page(f"{stem}.html", title, part_of(int(stem[:2])), len(own), minutes)


def _opening(notebook: Notebook) -> str:
    """Return the picture that the course opens with, as HTML; "" where the notebook has none."""
    for cell in notebook["cells"]:
        if KEEP_OUTPUT in cell["metadata"].get("tags", ()):
            for output in cell["outputs"]:
                html = output.get("data", {}).get("text/html", "")
                return html if isinstance(html, str) else "".join(html)
    return ""


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
