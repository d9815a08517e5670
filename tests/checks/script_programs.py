"""Programs of the script exercises made up in `test_scripts`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from helpers.checks.scripts import Source, compose, run_with_forked_workers, under_torchrun


def start(answer: Source, rank: int, world_size: int, how: str, nproc: int) -> dict[str, Any]:
    """Run the answer as a script with the case's launcher."""
    script = compose(answer, work, (nproc,))
    if how == "fork":
        return run_with_forked_workers(script, nproc, max_restarts=1, timeout_s=3)
    env = {"PYTHONPATH": f"{os.environ['COURSE_ROOT']}"}
    return under_torchrun(script, nproc, env=env)


def work(answer: Callable[[int], Any], nproc: int) -> Any:
    """Call the answer in a worker that has joined the group."""
    dist.init_process_group("gloo")
    print("started")
    value = answer(nproc)
    dist.destroy_process_group()
    return value
