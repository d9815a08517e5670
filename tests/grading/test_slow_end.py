"""A process that closes a sandbox continues, even if the kernel does not end the sandbox at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from helpers.grading.sandbox.levels import Plan, Sandbox
from helpers.ranks.processes import process_tree

FREEZER = Path("/sys/fs/cgroup/freezer")

pytestmark = [
    pytest.mark.soak,  # waits twice until a timeout
    pytest.mark.skipif(
        not os.access(FREEZER / "cgroup.procs", os.W_OK),
        reason="only a frozen process (cgroup version 1, root) surely outlives SIGKILL for a while",
    ),
]


@pytest.fixture
def ice() -> Iterator[Path]:
    """A group whose processes neither run nor exit."""
    folder = FREEZER / f"real-ranks-test-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        (folder / "freezer.state").write_text("THAWED")
        while (folder / "cgroup.procs").read_text():
            pass
        folder.rmdir()


def test_closing_frozen_sandbox_raises_nothing(plan: Plan, ice: Path) -> None:
    with Sandbox(plan) as sandbox:
        sandbox.connection.wait_until_ready()
        pid = sandbox.connection.pid
        for each in process_tree(pid):
            with suppress(ProcessLookupError):
                (ice / "cgroup.procs").write_text(str(each))
        (ice / "freezer.state").write_text("FROZEN")
    assert Path("/proc", str(pid)).exists()
    with Sandbox(plan) as following:
        following.connection.wait_until_ready()
