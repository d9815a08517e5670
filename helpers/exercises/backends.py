"""Machines for `pick_backend`: which backend fits, and why. Notebook 01's exercise draws from here.

machines -> on_each_machine(answer) in a rank -> {"1 GPU, 2 ranks, ...": "gloo", ...} -> look_at_backends
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from helpers.exercises.model import Case
from helpers.ranks.run import Run

Machine = tuple[int, int, bool, str]
"""What `pick_backend` is given: gpus, ranks, nccl, device."""

BOTH = "cpu:gloo,cuda:nccl"


def draw_machines(rng: random.Random) -> list[Machine]:
    """Draw one machine of each kind, so that no constant answer is right on all of them."""
    many = rng.randrange(3, 9)
    machines: list[Machine] = [
        (0, rng.randrange(1, 9), False, "cpu"),
        (many, rng.randrange(1, many), True, "cpu"),
        (many, many, True, "cuda"),
        (many, rng.randrange(1, many), True, "both"),
        (1, 2, True, "cuda"),
        (many, many + 1, True, "both"),
        (many, many, False, "cuda"),
        (many, 1, False, "both"),
    ]
    rng.shuffle(machines)
    return machines


def right_backend(gpus: int, ranks: int, nccl: bool, device: str) -> str:
    """Give the fastest backend that works there."""
    if device == "cpu" or not nccl or gpus < ranks:
        return "gloo"
    return "nccl" if device == "cuda" else BOTH


def describe_machine(gpus: int, ranks: int, nccl: bool, device: str) -> str:
    """Name a machine: `1 GPU, 2 ranks, NCCL, tensors on cuda`."""
    parts = (
        f"{gpus} GPU{'s' * (gpus != 1)}",
        f"{ranks} rank{'s' * (ranks != 1)}",
        "NCCL" if nccl else "no NCCL",
        f"tensors on {device}",
    )
    return ", ".join(parts)


def on_each_machine(
    answer: Callable[..., Any], rank: int, world_size: int, machines: Sequence[Machine]
) -> dict[str, Any]:
    """Call the answer for each machine; write the parts of "cpu:gloo,cuda:nccl" in one order."""
    return {describe_machine(*machine): _in_order(answer(*machine)) for machine in machines}


def look_at_backends(case: Case, run: Run) -> str:
    """Name the first machine whose backend is wrong, and why."""
    got = run.values[0]
    if run.failure is not None or not isinstance(got, dict):
        return ""
    for machine in case.inputs[0][0]:
        name, right = describe_machine(*machine), right_backend(*machine)
        if got.get(name) is None:
            return "The function returns nothing: the backend's name must come back by `return`."
        if got.get(name) != right:
            return f"{name}: {got.get(name)!r}, but {right!r} is right: {_why(*machine)}"
    return ""


def _why(gpus: int, ranks: int, nccl: bool, device: str) -> str:
    if device == "cpu":
        return "NCCL takes only tensors that are on a GPU."
    if not nccl:
        return "this torch was built without NCCL."
    if gpus < ranks:
        return "NCCL wants a GPU for each rank, and refuses two ranks on one."
    if device == "both":
        return "each device has a backend of its own, named as device:backend."
    return "every rank has a GPU to itself, and its tensors are there."


def _in_order(backend: Any) -> Any:
    return ",".join(sorted(backend.split(","))) if isinstance(backend, str) else backend
