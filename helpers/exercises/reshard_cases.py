"""Cases of `reshard_checkpoint`, and what is to be seen in wrong answers."""

from __future__ import annotations

import random
from typing import Any

import torch

from helpers.exercises.model import Case
from helpers.exercises.resume_programmes import whole
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run


def reshard_cases(rng: random.Random) -> list[Case]:
    """Draw checkpoints whose rows divide neither by the old nor by the new number of ranks."""
    return [_reshard_case(rng, before, after) for before, after in ((4, 2), (2, 3), (3, 1))]


def _reshard_case(rng: random.Random, before: int, after: int) -> Case:
    rows = rng.choice([7, 11, 13])
    shapes = {"embedding": (rows, 4), "bias": (rng.choice([5, 9, 17]),)}
    world_size = max(before, after)
    expected: list[Any] = [None] * world_size
    for rank in range(after):
        parts = {name: _part(shape, rank, after) for name, shape in shapes.items()}
        most = sum(part.numel() for part in parts.values())
        expected[rank] = {"elements read": _at_most(most)} | {
            name: {"placement": "(Shard(dim=0),)", "shape": list(shapes[name]), "local": part}
            for name, part in parts.items()
        }
    return Case(
        f"saved by {before} ranks, loaded by {after}",
        world_size,
        inputs=[(shapes, before, after)] * world_size,
        expected=expected,
        init=False,
    )


def _part(shape: tuple[int, ...], rank: int, size: int) -> torch.Tensor:
    chunks = whole(shape).chunk(size)
    return chunks[rank] if rank < len(chunks) else whole(shape)[:0]


def _at_most(most: int) -> Any:
    def problem(read: Any) -> str:
        if isinstance(read, int) and read <= most:
            return ""
        return f"{read} elements are read from the checkpoint; this rank's shares have {most}"

    return problem


def look_at_resharded(case: Case, run: Run) -> str:
    """Say what a rank loaded too much of, or did not load."""
    if isinstance(run.failure, RankFailed) and any(
        "load(" in place.source for place in run.failure.error.frames[-1:]
    ):
        return (
            "Do your DTensors have the whole shapes? `zeros(shape, device_mesh=mesh, placements="
            "[Shard(0)])` cuts rows that do not divide; `DTensor.from_local` takes the local part at "
            "its word."
        )
    if run.failure is not None:
        return ""
    shapes, _, after = case.inputs[0]
    for rank in range(after):
        value = run.values[rank]
        if not isinstance(value, dict) or "returned" in value:
            return f"Rank {rank} does not return a dict from name to DTensor."
        for name, shape in shapes.items():
            told = value.get(name)
            if not isinstance(told, dict):
                return ""
            if "local" not in told:
                return f"{name} is a plain {told['placement']}; wanted is a DTensor on `mesh`, Shard(0)."
            if "Shard(dim=0)" not in told["placement"]:
                return (
                    f"{name} is placed {told['placement']}: every rank would hold too much of it."
                )
            part = _part(shape, rank, after)
            if told["local"].numel() and not told["local"].any():
                return f"{name} is still zero: `dcp.load` writes into the tensors that it is given."
            if told["local"].shape != part.shape:
                return f"Rank {rank} holds {tuple(told['local'].shape)} of {name}, not {tuple(part.shape)}."
        share = sum(_part(shape, rank, after).numel() for shape in shapes.values())
        if isinstance(value.get("elements read"), int) and value["elements read"] > share:
            return (
                "Whole tensors were read and then cut. Give `dcp.load` tensors that are sharded "
                "already: then each rank reads its rows only, and a model larger than one rank's "
                "memory can be loaded."
            )
    return ""
