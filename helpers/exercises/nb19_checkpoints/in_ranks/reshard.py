"""19.2: a checkpoint for a different number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from helpers.exercises.shared.in_ranks.attempts import join
from helpers.ranks.rank_context import launch_folder


def run_reshard(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    saved: Mapping[str, torch.Tensor],
    shapes: dict[str, tuple[int, ...]],
    save_ranks: int,
    load_ranks: int,
) -> dict[str, Any] | None:
    """Save as a job of `save_ranks` ranks, and call the answer to load as a job of `load_ranks` ranks."""
    from torch.distributed.checkpoint.state_dict_saver import save
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    shared = launch_folder()
    folder = str(shared / "checkpoint")
    if rank < save_ranks:
        join(shared / "first job", rank, save_ranks)
        mesh = init_device_mesh("cpu", (save_ranks,))
        save(
            {name: distribute_tensor(x, mesh, [Shard(0)]) for name, x in saved.items()},
            checkpoint_id=folder,
        )
        dist.destroy_process_group()
    join(shared / "between", rank, world_size)
    dist.barrier()
    dist.destroy_process_group()
    if rank >= load_ranks:
        return None
    join(shared / "second job", rank, load_ranks)
    read, mesh = _record_reads(), init_device_mesh("cpu", (load_ranks,))
    found = answer(folder, shapes, mesh)
    if not isinstance(found, dict):
        return {"returned": "nothing" if found is None else f"a {type(found).__name__}"}
    told: dict[str, Any] = {"elements read": sum(read)}
    for name, value in found.items():
        if isinstance(value, DTensor):
            told[str(name)] = {
                "placement": str(tuple(value.placements)),
                "on mesh": value.device_mesh == mesh,
                "shape": list(value.shape),
                "local": value.to_local(),
            }
        else:
            told[str(name)] = {"placement": type(value).__name__}
    return told


def _record_reads() -> list[int]:
    """Return a list to which every read of a checkpoint appends its number of elements."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader

    read: list[int] = []
    real = FileSystemReader.read_data

    def read_data(self: Any, plan: Any, planner: Any) -> Any:
        read.extend(item.lengths.numel() for item in plan.items)
        return real(self, plan, planner)

    FileSystemReader.read_data = read_data  # type: ignore[method-assign]
    return read
