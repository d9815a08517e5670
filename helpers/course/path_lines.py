"""The lines in a notebook that list its parts on a short path and the path's next notebook.

`build` takes these lines from paths.toml and writes them into the learner's copies: one paragraph above the
first part, and a mark under the heading of each part that is not on the path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from helpers.course.notebook_file import Notebook, NotebookError, source_of
from helpers.course.paths import EVERYTHING, LearningPath, Stop, paths
from helpers.views.plain import join_words

_PART_PATTERN = re.compile(
    r"^## (?:Exercise (?P<number>\d+\.\d+): )?(?P<title>.+?)(?: \(\d+ min, .*\))?$", re.MULTILINE
)


def path_lines(notebook: str, cells: list[Notebook]) -> dict[str, str]:
    """Return {cell id: lines} for the last text cell above the notebook's first part.

    notebook: its name, without ".ipynb". Raises NotebookError if a path contains a part that does not exist.
    """
    stops = _stops_of(notebook)
    if not stops:
        return {}
    above, links = "", dict[str, str]()
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for part in _PART_PATTERN.finditer(source_of(cell)):
                words = " ".join(filter(None, (part["number"], part["title"])))
                # JupyterLab does not find a heading by an address with ● in it
                links[part["title"]] = f"[{words}]({notebook}.ipynb#cell-id={cell['id']})"
            above = above if links else cell["id"]
    try:
        return {above: "\n\n".join(_line(path, stop, links) for path, stop in stops)}
    except KeyError as error:
        raise NotebookError(f"{notebook} has no part {error}, which a path names") from None


def mark_parts(notebook: str, cells: list[Notebook]) -> dict[str, str]:
    """Return {cell id: text with marks} for each cell with a section outside a short path.

    Only parts up to the last exercise are marked, because the parts below it, such as the glossary, are for
    reference.
    """
    stops = _stops_of(notebook)
    texts = [(cell, source_of(cell)) for cell in cells if cell["cell_type"] == "markdown"]
    parts = [(cell["id"], part) for cell, text in texts for part in _PART_PATTERN.finditer(text)]
    on_paths = {title for _, stop in stops for title in stop.parts}
    last = max(
        (i for i, (_, part) in enumerate(parts) if part["number"] or part["title"] in on_paths),
        default=-1,
    )
    marks: dict[tuple[str, int], str] = {}
    for cell_id, part in parts[: last + 1]:
        off = [path.title for path, stop in stops if stop.parts and part["title"] not in stop.parts]
        if off:
            marks[cell_id, part.end()] = f"\n\n*Not on the path {join_words(off)}.*"
    marked = {}
    for cell, text in texts:
        own = sorted(end for cell_id, end in marks if cell_id == cell["id"])
        for end in reversed(own):  # go backwards, so that earlier positions remain valid
            text = text[:end] + marks[cell["id"], end] + text[end:]
        if own:
            marked[cell["id"]] = text
    return marked


def _stops_of(notebook: str) -> list[tuple[LearningPath, Stop]]:
    short = (path for path in paths().values() if path.name != EVERYTHING)
    return [(path, stop) for path in short for stop in path.stops if stop.notebook == notebook]


def _line(path: LearningPath, stop: Stop, links: Mapping[str, str]) -> str:
    parts = join_words([links[title] for title in stop.parts])
    read = (
        f"run the cells above the first heading, then read {parts}"
        if parts
        else "read all of it except the parts marked further"
    )
    following = path.after(stop.notebook)
    end = f"Continue in notebook {following.notebook[:2]}." if following else _ending(path)
    known = f"The path presupposes {path.presupposes}. " if stop is path.stops[0] else ""
    return f"On the path *{path.title}*, {read}. {known}{end}"


def _ending(path: LearningPath) -> str:
    return f"The path ends there. {path.sequel}".rstrip()
