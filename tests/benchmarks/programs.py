"""The program that the measured launchers run: one all_reduce in a new world. Spawned processes import it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist


def one_all_reduce(rank: int, world_size: int) -> float:
    """Reduce once under `launch`, which has already joined the group."""
    x = torch.ones(4)
    dist.all_reduce(x)
    return float(x[0])


def join_and_reduce(rank: int, world_size: int, store: str) -> None:
    """Join by a FileStore, and reduce once."""
    dist.init_process_group(
        "gloo", store=dist.FileStore(store, world_size), rank=rank, world_size=world_size
    )
    x = torch.ones(4)
    dist.all_reduce(x)
    assert x[0] == world_size
    dist.destroy_process_group()


def fresh_store() -> str:
    return str(Path(tempfile.mkdtemp(prefix="bench-")) / "store")


def bare_fork(world_size: int) -> None:
    """Do the minimum: fork this process, initialize gloo, run one all_reduce, and exit."""
    store, pids = fresh_store(), []
    for rank in range(world_size):
        pid = os.fork()
        if pid == 0:
            try:
                x = torch.ones(4)
                dist.init_process_group(
                    "gloo",
                    store=dist.FileStore(store, world_size),
                    rank=rank,
                    world_size=world_size,
                )
                dist.all_reduce(x)
            finally:
                os._exit(int(x[0] != world_size))
        pids.append(pid)
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    assert not any(statuses), statuses


def reduce_in_joined_group() -> None:
    """Reduce once under accelerate's debug_launcher, which has joined the group."""
    x = torch.ones(4)
    dist.all_reduce(x)


def join_from_environment_and_reduce() -> None:
    """Join and reduce once in each process of an elastic launch, including torchrun's."""
    dist.init_process_group("gloo")
    reduce_in_joined_group()
    dist.destroy_process_group()


if __name__ == "__main__":  # under torchrun
    join_from_environment_and_reduce()
