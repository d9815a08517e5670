"""Per-user limits of the kernel that another process of the same user has used up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WATCHES = """
import sys
from pathlib import Path
from helpers.exercises.shared.in_ranks.folder_watch import watch_folder
try:
    with watch_folder(Path(sys.argv[1])):
        print("watches")
except OSError as error:
    print("refused", error.errno)
"""
NONE_LEFT = 'echo 0 > "/proc/sys/user/$1" || exit 77; shift; exec "$@"'


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare")
@pytest.mark.parametrize("limit", ["max_inotify_watches", "max_inotify_instances"])
def test_missing_inotify_watch_raises_error(limit: str, tmp_path: Path) -> None:
    """An error causes another try without other answers; "no file was written" would be a wrong verdict."""
    run = subprocess.run(
        ["unshare", "-r", "sh", "-c", NONE_LEFT, "sh", limit]
        + [sys.executable, "-c", WATCHES, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if run.returncode == 77 or run.stderr.startswith("unshare"):
        pytest.skip(f"no user namespace can be had here: {run.stderr}")
    assert run.stdout.startswith("refused"), run
