"""A rank server's measures for cheap forks."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from helpers.ranks import launcher
from helpers.ranks.connection import Connection

KERNEL = tuple(int(part) for part in platform.release().split(".")[:2] if part.isdigit())


@pytest.mark.extended
@pytest.mark.skipif(
    not os.path.exists("/proc/self/smaps_rollup") or KERNEL < (6, 1),
    reason="this kernel gathers nothing when it is asked",
)
def test_server_memory_uses_huge_pages() -> None:
    server = Connection()
    try:
        server.wait_until_ready()
        lines = Path(f"/proc/{server.pid}/smaps_rollup").read_text().splitlines()[1:]
        held = {name: int(value.split()[0]) for name, value in (line.split(":") for line in lines)}
    finally:
        server.close()
    assert held["AnonHugePages"] > 0.6 * held["Anonymous"], held


def test_rank_runs_only_its_own_finalizers(tmp_path: Path) -> None:
    def leaves_a_mark(rank: int, world_size: int, path: str) -> int:
        import weakref

        known = len(vars(weakref.finalize)["_registry"])
        weakref.finalize(leaves_a_mark, Path(path).write_text, "ended")
        return known

    leaves_a_mark.__module__ = "__main__"
    path = tmp_path / "mark"
    assert launcher.launch(leaves_a_mark, 1, args=(str(path),)).values == [0]
    assert path.read_text() == "ended"
