"""Find the picture in the learner's notebook that shows the result of a path."""

from __future__ import annotations

import re
from contextlib import suppress

from helpers.course.notebook_file import NotebookError, read_notebook
from helpers.course.paths import LearningPath
from helpers.course.workspace import WorkspaceError, find_workspace

_MAX_BYTES = 1 << 20
_MAX_NOTEBOOK_BYTES = 64 << 20


def path_picture(path: LearningPath) -> str:
    """Return the picture as a data URL, or "" if the notebook has not shown it yet."""
    if path.picture is None:
        return ""
    # A learner's file may contain anything.
    with suppress(OSError, NotebookError, WorkspaceError, AttributeError, KeyError, TypeError):
        file = find_workspace().work / f"{path.picture.notebook}.ipynb"
        if file.stat().st_size > _MAX_NOTEBOOK_BYTES:
            return ""
        for cell in read_notebook(file)["cells"]:
            if cell.get("id") != path.picture.cell:
                continue
            for output in cell["outputs"]:
                png = "".join(output.get("data", {}).get("image/png", ""))
                png = re.sub(r"\s", "", png)
                if re.fullmatch(r"[A-Za-z0-9+/]+=*", png) and len(png) < _MAX_BYTES:
                    return f"data:image/png;base64,{png}"
    return ""
