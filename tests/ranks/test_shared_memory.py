"""The notebook's shared memory is shared with its ranks; memory that ranks did not unlink is removed."""

from __future__ import annotations

import gc
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.ranks import sending
from helpers.ranks.failures import RankDied
from helpers.ranks.launcher import launch


@pytest.mark.extended
def test_ranks_train_shared_model() -> None:
    model = torch.nn.Linear(2, 1)
    model.share_memory()
    with torch.no_grad():
        model.weight.zero_()

    def train(rank: int, world_size: int, model: Any) -> bool:
        with torch.no_grad():
            model.weight[0, rank] = rank + 1.0
        return bool(model.weight.is_shared())

    train.__module__ = "__main__"
    assert launch(train, 2, args=(model,)).values == [True, True]
    assert model.weight.tolist() == [[1.0, 2.0]]


def test_writes_through_view_reach_shared_tensor() -> None:
    counts = torch.zeros(2, 3, dtype=torch.int16).share_memory_()
    column = counts[:, 1]
    own = torch.zeros(3)

    def count(rank: int, world_size: int) -> None:
        column[rank] += rank + 5
        own[rank] += 1

    count.__module__ = "__main__"
    launch(count, 2)
    assert counts.tolist() == [[0, 5, 0], [0, 6, 0]] and own.tolist() == [0, 0, 0]


def test_unreachable_shared_memory_warns_about_copy() -> None:
    shared = torch.arange(3.0).share_memory_()
    sent, _ = sending.dumps(shared)
    del shared
    gc.collect()
    with pytest.warns(UserWarning, match="is a copy on this rank"):
        assert pickle.loads(sent).tolist() == [0, 1, 2]


@pytest.mark.extended
def test_removes_shared_memory_left_by_ranks() -> None:
    def forgets(rank: int, world_size: int, name: str) -> bool:
        from multiprocessing import shared_memory

        made = shared_memory.SharedMemory(create=True, size=64, name=f"{name}_{rank}")
        made.close()
        if rank == 1 and name.endswith("dies"):
            os._exit(3)
        return True

    for name in (f"forgotten_{os.getpid()}", f"forgotten_{os.getpid()}_dies"):
        for _ in range(2):
            run = launch(forgets, 2, args=(name,), on_failure="return")
            assert "FileExistsError" not in str(run.failure)
            assert run.ok or isinstance(run.failure, RankDied)
    launch(lambda rank, n: rank, 1)  # the server ends a launch before it starts the next
    assert not list(Path("/dev/shm").glob(f"forgotten_{os.getpid()}*"))


@pytest.mark.extended
def test_ends_lingering_resource_tracker() -> None:
    def starts_one(rank: int, world_size: int) -> int:
        import subprocess
        import sys

        line = "'resource_tracker import main'; import time; time.sleep(600)"
        return subprocess.Popen([sys.executable, "-c", line]).pid

    (pid,) = launch(starts_one, 1).values
    launch(lambda rank, n: rank, 1)
    assert not Path(f"/proc/{pid}").exists()
