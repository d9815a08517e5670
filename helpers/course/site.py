"""`make site`: write the whole course as static pages, for trying it without an installation.

    solutions/ -> run -> sources of the learners' copies, outputs of the run -> a page per notebook
    run_landing_page() -> run -> players and an explorer -> index.html, with the paths

Players and explorers are plain HTML with embedded scripts, so they also work without a server.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter

from helpers.checks.headings import headings
from helpers.course.build import KEEP_OUTPUT, learner_copy
from helpers.course.home import part_of
from helpers.course.links import files_by_number
from helpers.course.notebook_file import Notebook, notebook_metadata, read_notebook, source_of
from helpers.course.outputs import run_notebook
from helpers.course.page import render_page
from helpers.course.paths import hours, paths
from helpers.course.workspace import docs_page

_VARIANTS = (
    ("As it is", "Faults(4)"),
    ("Rank 2 is late", "Faults(4, late_rank=2)"),
    ("Messages to rank 3 are slow", "Faults(4, slow_rank=3)"),
    ("Rank 1 leaves out its send", "Faults(4, dropped_call=(1, 1))"),
)
"""The runs of `break_it` on the landing page. Each runs the function at the start of notebook 00."""
_TITLE = "Real Ranks: a course in distributed PyTorch"
_ABOUT = (
    "Notebooks whose cells start real ranks on your own machine. You see which rank waits for which, and "
    "every exercise is checked by its values and its communication."
)
_PICTURE = "deadlock.webp"
_MIN_DESCRIPTION = 70
_REFERENCE_NOTE = "With the reference solution, which is not shown here:"
_USES_SOLUTION_PATTERN = re.compile(r"^%%after |\b(?:check|next_steps|show_me)\(", re.MULTILINE)
"""Pattern of cells whose output depends on the answers to exercises."""
_NOTEBOOK_PATTERN = re.compile(r'href="(\d\d_\w+)\.ipynb(#[^"]*)?"')


@dataclass(frozen=True)
class _Page:
    """One notebook in the list. minutes: the minutes of its exercises."""

    file: str
    title: str
    part: str
    exercises: int
    minutes: int


def build_site(
    solutions: Path,
    out: Path,
    names: tuple[str, ...] = (),
    *,
    run: bool = True,
    address: str = "",
    on_page: Callable[[Path], None] = lambda path: None,
) -> list[Path]:
    """Write index.html and a page for each solved notebook, or for those in `names`. Return the files.

    Exercises appear as stubs, as in the learners' copies.

    Args:
        run: Whether to run the notebooks first, so that timelines can be played. Otherwise the stored, still
            outputs are used.
        address: The URL of the published site. Other sites can show a page's picture only if this URL is
            known.
        on_page: Function called with each page after writing it.
    """
    out.mkdir(parents=True, exist_ok=True)
    sources = sorted(solutions.glob("*.ipynb"))
    files = files_by_number(source.name for source in sources)
    exporter = HTMLExporter(template_name="lab", exclude_output_prompt=True)
    shared = {"address": f"{address.rstrip('/')}/" if address else "", "picture": _PICTURE}
    if picture := docs_page(_PICTURE):
        shutil.copyfile(picture, out / _PICTURE)
    written, pages = [], []

    def write(name: str, text: str) -> None:
        path = out / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
        on_page(path)

    for source in sources:
        if names and source.stem[:2] not in names:
            continue
        solved = read_notebook(source)
        solved = run_notebook(solved, source.name, live=True) if run else solved
        notebook = shown_notebook(solved, source.name, files)
        page = _page(source.stem, notebook)
        title = f"{page.title} · Real Ranks"
        notebook["metadata"] = notebook["metadata"] | {"title": title}
        body, _ = exporter.from_notebook_node(nbformat.reads(json.dumps(notebook), as_version=4))
        head = render_page(
            "share.html", title=title, about=describe(notebook), file=page.file, **shared
        )
        body = body.replace("</title>", f"</title>\n{head}", 1)
        write(page.file, _NOTEBOOK_PATTERN.sub(_page_link, body))
        pages.append(page)
    first = read_notebook(sources[0])
    shown = run_landing_page(first) if run else {_VARIANTS[0][0]: _first_picture(first)}
    index = render_page(
        "site.html",
        title=_TITLE,
        about=_ABOUT,
        file="",
        pages=pages,
        shown=shown,
        paths=list(paths().values()),
        hours=hours,
        **shared,
    )
    write("index.html", index)
    return written


def describe(notebook: Notebook) -> str:
    """Return a notebook's first sentences as plain text for search engines and links."""
    text = source_of(notebook["cells"][0]).partition("\n")[2]
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL).strip().partition("\n\n")[0]
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    sentences = re.split(r"(?<=[.?!]) ", re.sub(r"[*`$]", "", " ".join(text.split())))
    words = ""
    for sentence in sentences:
        if len(words) >= _MIN_DESCRIPTION:
            break
        words = f"{words} {sentence}".strip()
    return re.sub(r":$", ".", words)


def run_landing_page(first: Notebook) -> dict[str, str]:
    """Run the examples of the landing page; return their HTML by title. first: notebook 00."""
    opening = next(cell for cell in first["cells"] if _is_kept(cell))
    called = (
        "from helpers import break_it, timeline\nfrom helpers.explorers.break_it import Faults\n\n"
        "timeline(break_it(add_up_by_hand, 4).run({}))"
    )
    sources = [source_of(opening), *(called.format(faults) for _, faults in _VARIANTS)]
    sources.append('from helpers import explore\n\nexplore("pipeline")')
    cells: list[Notebook] = [
        {
            "cell_type": "code",
            "id": f"shown-{i}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for i, source in enumerate(sources)
    ]
    notebook = {
        "cells": cells,
        "metadata": notebook_metadata(),
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    _, *found = run_notebook(notebook, "shown.ipynb", live=True)["cells"]
    titles = [*(title for title, _ in _VARIANTS), "A pipeline, with sliders"]
    return {title: _html(cell) for title, cell in zip(titles, found, strict=True)}


def shown_notebook(solved: Notebook, name: str, files: dict[str, str]) -> Notebook:
    """Return the learner's copy with the outputs of the solved notebook.

    A line above each output of an answer mentions this, because the page shows only the answer's stub.
    """
    shown = learner_copy(solved, name, files)
    for copy, original in zip(shown["cells"], solved["cells"], strict=True):
        if copy["cell_type"] == "code":
            copy["outputs"] = original["outputs"]
            if original["outputs"] and _USES_SOLUTION_PATTERN.search(source_of(original)):
                copy["outputs"] = [_reference_note(), *copy["outputs"]]
    return shown


def _page_link(match: re.Match[str]) -> str:
    return f'href="{match[1]}.html{match[2] or ""}"'


def _page(stem: str, notebook: Notebook) -> _Page:
    title = source_of(notebook["cells"][0]).partition("\n")[0].removeprefix("# ")
    own = [heading for heading in headings().values() if heading.notebook == stem]
    minutes = sum(heading.minutes for heading in own)
    return _Page(f"{stem}.html", title, part_of(int(stem[:2])), len(own), minutes)


def _first_picture(notebook: Notebook) -> str:
    """Return the first picture of the course as HTML, or "" if the notebook has none."""
    return next((_html(cell) for cell in notebook["cells"] if _is_kept(cell)), "")


def _is_kept(cell: Notebook) -> bool:
    return KEEP_OUTPUT in cell["metadata"].get("tags", ())


def _html(cell: Notebook) -> str:
    """Return a cell's HTML output, or "" if there is none."""
    for output in cell["outputs"]:
        html = output.get("data", {}).get("text/html", "")
        if html:
            return html if isinstance(html, str) else "".join(html)
    return ""


def _reference_note() -> Notebook:
    data = {"text/html": f"<p><em>{_REFERENCE_NOTE}</em></p>", "text/plain": _REFERENCE_NOTE}
    return {"output_type": "display_data", "data": data, "metadata": {}}
