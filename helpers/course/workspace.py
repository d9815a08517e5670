"""Fill the learner's folder once, without ever overwriting a file.

`course lab` calls `copy_missing_notebooks` and opens JupyterLab in the folder; `course reset` calls `reset`.

    notebooks/NN_topic.ipynb  --copied once-->  work/NN_topic.ipynb

The folder belongs to a person, not to the installation, because on a hub many people share one copy of the
course.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.checks.headings import headings
from helpers.course.notebook_file import Notebook, read_notebook, source_of

PAGE_EXTENSIONS = Path(__file__).parent / "look" / "extensions"
"""The folder of the course's extensions to JupyterLab's page."""
LOOK = (
    "--custom-css",
    "--ServerApp.jpserver_extensions=helpers.course.look=True",
    f"--LabServerApp.extra_labextensions_path={PAGE_EXTENSIONS}",
)
"""Options that make JupyterLab adapt pictures to its theme, show the progress on the home page, and save a
notebook when a check passes."""


class WorkspaceError(Exception):
    """The learner's folder cannot be filled or reset. The message gives the reason and advice."""


@dataclass(frozen=True)
class Workspace:
    """The folders of notebooks, solutions and the learner's work, for one copy of the course."""

    root: Path

    @property
    def notebooks(self) -> Path:
        return self.root / "notebooks"

    @property
    def solutions(self) -> Path:
        return self.root / "solutions"

    @property
    def work(self) -> Path:
        """Return the folder of the person who runs this process.

        It is $REAL_RANKS_WORK if that is set, otherwise `work/` in the course's folder if it belongs to this
        person, otherwise `~/real-ranks`.
        """
        if named := os.environ.get("REAL_RANKS_WORK"):
            return Path(named).expanduser().absolute()
        folder = self.root / "work"
        return folder if _is_owned_and_writable(folder) else Path.home() / "real-ranks"

    def owns(self, path: Path) -> bool:
        """Return whether a file is in the learner's folder or belongs to the course."""
        folders = (self.work, self.notebooks, self.solutions)
        return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)


def _is_owned_and_writable(folder: Path) -> bool:
    """Return whether a folder, or its parent if it does not exist, is writable and belongs to this person.

    Another person's folder is never used, even if its permissions allow it. Root counts as the owner of
    all folders, because in a container the only user is often root, and the course is a mounted folder of the
    host's user.
    """
    existing = folder if folder.exists() else folder.parent
    is_mine = os.geteuid() in (0, existing.stat().st_uid)
    return is_mine and os.access(existing, os.W_OK)


def find_workspace() -> Workspace:
    """Return the folder of this installation of the course.

    Raises WorkspaceError if the package was installed without the notebooks next to it.
    """
    workspace = Workspace(Path(__file__).resolve().parents[2])
    if not (workspace.notebooks.is_dir() or workspace.solutions.is_dir()):
        raise WorkspaceError(
            f"The course's notebooks are not in {workspace.root}: the package seems to have been"
            " installed without them. Get the whole project and run `make lab` in its folder."
        )
    return workspace


def copy_missing_notebooks(workspace: Workspace) -> list[Path]:
    """Copy every notebook missing from the learner's folder. Return the new files."""
    work = _work_folder(workspace)
    return [
        target
        for source in sorted(workspace.notebooks.glob("*.ipynb"))
        if _copy_if_new(source, target := work / source.name) and sign_notebook(target)
    ]


def sign_notebook(notebook: Path) -> bool:
    """Sign a notebook made by the course, because JupyterLab only runs scripts in trusted notebooks."""
    import nbformat  # import it here, because most commands do not need it
    from nbformat.sign import NotebookNotary

    # Without a signature, everything works except the animated picture.
    with contextlib.suppress(OSError, ValueError, sqlite3.Error):
        notary = NotebookNotary()
        with contextlib.closing(notary.store):
            notary.sign(nbformat.read(notebook, as_version=4))
    return True


def reset(workspace: Workspace, which: str) -> tuple[Path, Path | None]:
    """Restore the original copy of one notebook, keeping the learner's file next to it.

    `which` is a number ("2", "02") or a name. Return the fresh notebook and the old notebook's new path, or
    None if there was no old notebook. Raises WorkspaceError if there is no such notebook.
    """
    source = find_notebook(workspace.notebooks, which)
    target = _work_folder(workspace) / source.name
    kept = _move_aside(target) if target.exists() else None
    _copy_if_new(source, target)
    sign_notebook(target)
    return target, kept


def _work_folder(workspace: Workspace) -> Path:
    """Return the person's folder, created if necessary. Raises WorkspaceError if it is not writable."""
    work = workspace.work
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"{work} cannot be created ({error.strerror}). Set REAL_RANKS_WORK to a folder that you "
            "can write."
        ) from error
    if not os.access(work, os.W_OK):
        raise WorkspaceError(
            f"{work} cannot be written. Set REAL_RANKS_WORK to a folder that you can write."
        )
    return work


def find_notebook(folder: Path, which: str) -> Path:
    """Return the notebook of a folder with this number or name. Raises WorkspaceError."""
    wanted = Path(which).name.removesuffix(".ipynb")
    for path in sorted(folder.glob("*.ipynb")):
        number = path.stem.partition("_")[0]
        if wanted in (path.stem, number, number.removeprefix("0")):
            return path
    for heading in headings().values():
        if wanted in (heading.name, heading.number, heading.title):
            raise WorkspaceError(
                f"{which} is one exercise of {heading.notebook}. For the whole notebook, give its "
                f"number: {heading.notebook[:2]}."
            )
    known = ", ".join(path.stem for path in sorted(folder.glob("*.ipynb"))) or "none yet"
    raise WorkspaceError(f"No notebook {which!r}. Available: {known}. Pass a name or number.")


def docs_page(name: str) -> Path | None:
    """Return a page of the documentation, or None if this copy of the course lacks it."""
    page = Path(__file__).resolve().parents[2] / "docs" / name
    return page if page.is_file() else None


def cells_of(notebook: str) -> list[Notebook]:
    """Return the cells of a notebook of the course, by its name, or [] if its file is missing."""
    path = file_of(notebook)
    return [] if path is None else read_notebook(path)["cells"]


@cache
def matching_cells(notebook: str, pattern: str) -> Mapping[str, str]:
    """Return {match of the pattern's group: cell id}, used to open a notebook at a cell."""
    return dict(match_cell_ids(notebook, pattern))


def match_cell_ids(notebook: str, pattern: str) -> list[tuple[str, str]]:
    """Return the matches of the pattern's group in a notebook, in order, each with its cell's id."""
    return [
        (found, cell.get("id", ""))
        for cell in cells_of(notebook)
        for found in re.findall(pattern, source_of(cell), re.MULTILINE)
    ]


def file_of(notebook: str) -> Path | None:
    """Return a notebook's file for learners, or the solved notebook if there is no other."""
    try:
        workspace = find_workspace()
    except (WorkspaceError, OSError):
        return None
    files = (f / f"{notebook}.ipynb" for f in (workspace.notebooks, workspace.solutions))
    return next((file for file in files if file.is_file()), None)


def _copy_if_new(source: Path, target: Path) -> bool:
    content = source.read_bytes()
    try:
        with target.open("xb") as file:  # "x": never overwrite a file, even if it appeared just now
            file.write(content)
    except FileExistsError:
        return False
    return True


def _move_aside(path: Path) -> Path:
    count = 1
    while (kept := path.with_name(f"{path.stem}.before-reset-{count}{path.suffix}")).exists():
        count += 1
    return path.rename(kept)


def set_up_jupyter() -> None:
    """Set up this environment's Jupyter for learners, unless it has been configured differently.

    Afterwards, JupyterLab does not ask newcomers about its news feed, which it would fetch from the network.
    Exported pages show quizzes and hints as text. Jupyter servers load `hub`, which does nothing unless it
    runs on a hub. This function writes the files because pip omits them for packages in editable mode, such
    as this one.
    """
    etc = Path(sys.prefix, "etc", "jupyter")
    disabled = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    _write_new(etc / "labconfig" / "page_config.json", disabled)
    enabled = {"ServerApp": {"jpserver_extensions": {"helpers.course.hub": True}}}
    _write_new(etc / "jupyter_server_config.d" / "real_ranks.json", enabled)
    # JupyterLab's menu uses the server's settings for exports, but `jupyter nbconvert` has separate settings.
    exported = {"HTMLExporter": {"preprocessors": ["helpers.course.export.PlainWidgets"]}}
    _write_new(etc / "jupyter_server_config.d" / "real_ranks_export.json", exported)
    _write_new(etc / "jupyter_nbconvert_config.json", exported)


def _write_new(path: Path, settings: Mapping[str, object]) -> None:
    if path.exists():
        return
    # Ignore errors, because these settings are only a convenience
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
