"""The folder and the deadline that all runs of torch's tests have in common."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEADLINE_S = 60.0


@contextmanager
def folder_of_a_run() -> Iterator[str]:
    """Make the folders in which torch's tests put their barriers and stores."""
    with tempfile.TemporaryDirectory(prefix="ts-", ignore_cleanup_errors=True) as folder:
        for name in ("barrier", "test_dir", "init_dir"):
            (Path(folder) / name).mkdir()
        yield folder
