"""The last holder of a folder removes it, and a later run removes folders left by killed processes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from helpers.grading.sandbox.cleanup import NotOurs, hold_folder, remove_unheld_folders

_PREFIX = "real-ranks-held-test-"
_HOLD = """
import sys
from pathlib import Path
from helpers.grading.sandbox.cleanup import hold_folder
with hold_folder(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"{_PREFIX}1"


def _holder(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _as_old(folder: Path) -> None:
    os.utime(folder, (0, 0))


def test_last_holder_removes_folder(folder: Path) -> None:
    other = _holder(folder)
    with hold_folder(folder):
        (folder / "file").touch()
        other.communicate(timeout=30)
        assert (folder / "file").exists()
    assert not folder.exists()


def test_sweep_removes_only_unheld_folders(
    folder: Path,
) -> None:
    other = _holder(folder)
    _as_old(folder)
    remove_unheld_folders(_PREFIX)
    assert folder.exists()
    other.kill()
    other.communicate(timeout=30)
    remove_unheld_folders(_PREFIX)
    assert not folder.exists()


def test_sweep_keeps_new_folders_and_links(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / f"{_PREFIX}2").symlink_to(target)
    _as_old(target)
    remove_unheld_folders(_PREFIX)
    assert folder.exists() and target.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755, 0o1777])
def test_refuses_folder_accessible_to_others(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    (folder / "planted").touch()
    with (
        pytest.raises(NotOurs, match=f"mode {mode:04o}; expected: .* mode 0700"),
        hold_folder(folder),
    ):
        pass
    assert (folder / "planted").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_refuses_folder_of_another_user(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    with pytest.raises(NotOurs, match="belongs to user 65534"), hold_folder(folder):
        pass


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_created_folder_is_private_to_user(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with hold_folder(folder), hold_folder(folder):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        os.umask(before)
