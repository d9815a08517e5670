"""The learner's folder is filled once and never overwritten."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.course.workspace import (
    Workspace,
    WorkspaceError,
    copy_missing_notebooks,
    find_workspace,
    reset,
)

NOBODY = 65_534


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
    assert len(copy_missing_notebooks(workspace)) == 3
    mine = workspace.work / "01_process_groups.ipynb"
    mine.write_text("my work")
    (workspace.notebooks / mine.name).write_text("a newer edition")
    assert copy_missing_notebooks(workspace) == []
    assert mine.read_text() == "my work"


def test_fill_copies_new_notebooks(workspace: Workspace) -> None:
    copy_missing_notebooks(workspace)
    (workspace.notebooks / "22_launchers_and_backends.ipynb").write_text("new")
    assert copy_missing_notebooks(workspace) == [workspace.work / "22_launchers_and_backends.ipynb"]


@pytest.mark.parametrize(
    "which", ["1", "01", "01_process_groups", "01_process_groups.ipynb", "../01_process_groups"]
)
def test_reset_keeps_old_file_as_backup(workspace: Workspace, which: str) -> None:
    copy_missing_notebooks(workspace)
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


def test_resets_deleted_notebook(workspace: Workspace) -> None:
    fresh, kept = reset(workspace, "14")
    assert fresh.read_text() == "handed out 14_pipeline_parallel" and kept is None


@pytest.mark.parametrize("which", ["2", "99", "process", ""])
def test_unknown_notebook_reset_lists_existing_notebooks(workspace: Workspace, which: str) -> None:
    with pytest.raises(WorkspaceError, match="00_start_here, 01_process_groups"):
        reset(workspace, which)


def test_finds_workspace_of_checkout() -> None:
    assert (find_workspace().root / "pyproject.toml").is_file()


def as_another_user(holds: Callable[[], bool]) -> bool:
    """Return whether a condition holds for a user other than root, in a separate process."""
    pid = os.fork()
    if not pid:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            os._exit(0 if holds() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_shared_installation_works_in_user_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    home = Path("/home/somebody/real-ranks")
    assert as_another_user(lambda: Workspace(Path("/usr")).work == home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_refuses_folder_of_another_user(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    for folder in [workspace.root, *workspace.root.parents[:-1]]:
        folder.chmod(folder.stat().st_mode | 0o055)
    workspace.root.chmod(0o777)
    home = Path("/home/somebody/real-ranks")
    assert as_another_user(lambda: workspace.work == home)
    os.chown(workspace.root, NOBODY, NOBODY)
    assert as_another_user(lambda: workspace.work == workspace.root / "work")


def test_uses_folder_from_environment_variable(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REAL_RANKS_WORK", "~/a/b")
    assert len(copy_missing_notebooks(workspace)) == 3
    assert len(names(tmp_path / "a" / "b")) == 3
    assert not (workspace.root / "work").exists()


def test_uncreatable_folder_raises_clear_error(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REAL_RANKS_WORK", "/proc/no-folder/work")
    with pytest.raises(WorkspaceError, match="Set REAL_RANKS_WORK to a folder"):
        copy_missing_notebooks(workspace)
