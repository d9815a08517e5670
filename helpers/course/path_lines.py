"""The lines in a notebook that say which of its parts belong to a short path, and where the path continues.

`build` writes them into the learner's copies, from paths.toml.
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
    """Return a notebook's lines by the id of their cell, the last text above the first part.

    notebook: its name, without ".ipynb". Raises NotebookError if a path names a part that does not exist.
    """
    short = (path for path in paths().values() if path.name != EVERYTHING)
    stops = [(path, stop) for path in short for stop in path.stops if stop.notebook == notebook]
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


def _line(path: LearningPath, stop: Stop, links: Mapping[str, str]) -> str:
    parts = join_words([links[title] for title in stop.parts])
    read = (
        f"run the cells above the first heading, then read {parts}"
        if parts
        else "read all of it but what is marked further"
    )
    following = path.after(stop.notebook)
    end = f"Continue in notebook {following.notebook[:2]}." if following else "There the path ends."
    known = f"The path presupposes {path.presupposes}. " if stop is path.stops[0] else ""
    return f"On the path *{path.title}*, {read}. {known}{end}"
