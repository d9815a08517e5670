"""The learner's folder is filled once and never overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.course.workspace import Workspace, WorkspaceError, fill, find_workspace, reset


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path)
    made.notebooks.mkdir()
    for name in ("00_start_here", "01_process_groups", "14_pipeline_parallel"):
        (made.notebooks / f"{name}.ipynb").write_text(f"handed out {name}")
    return made


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_fill_copies_once_and_never_overwrites(workspace: Workspace) -> None:
    assert len(fill(workspace)) == 3
    mine = workspace.work / "01_process_groups.ipynb"
    mine.write_text("my work")
    (workspace.notebooks / mine.name).write_text("a newer edition")
    assert fill(workspace) == []
    assert mine.read_text() == "my work"


def test_fill_brings_notebooks_that_are_new(workspace: Workspace) -> None:
    fill(workspace)
    (workspace.notebooks / "22_other_roads.ipynb").write_text("new")
    assert fill(workspace) == [workspace.work / "22_other_roads.ipynb"]


@pytest.mark.parametrize(
    "which", ["1", "01", "01_process_groups", "01_process_groups.ipynb", "../01_process_groups"]
)
def test_reset_keeps_the_old_file_beside_the_fresh_one(workspace: Workspace, which: str) -> None:
    fill(workspace)
    mine = workspace.work / "01_process_groups.ipynb"
    for count in (1, 2):
        mine.write_text(f"my work {count}")
        fresh, kept = reset(workspace, which)
        assert fresh == mine and fresh.read_text() == "handed out 01_process_groups"
        assert kept == workspace.work / f"01_process_groups.before-reset-{count}.ipynb"
    assert [(workspace.work / name).read_text() for name in names(workspace.work)[1:4]] == [
        "my work 1",
        "my work 2",
        "handed out 01_process_groups",
    ]


def test_reset_of_a_notebook_that_was_deleted(workspace: Workspace) -> None:
    fresh, kept = reset(workspace, "14")
    assert fresh.read_text() == "handed out 14_pipeline_parallel" and kept is None


@pytest.mark.parametrize("which", ["2", "99", "process", ""])
def test_reset_of_no_notebook_names_those_there_are(workspace: Workspace, which: str) -> None:
    with pytest.raises(WorkspaceError, match="00_start_here, 01_process_groups"):
        reset(workspace, which)


def test_this_checkout_is_a_workspace() -> None:
    assert (find_workspace().root / "pyproject.toml").is_file()
