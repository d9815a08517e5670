"""20.4: ranks of which one has a wrong shard, or flips a bit of what it computes."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

STEPS = 5
"""How many steps an answer may repeat; a wrong rank is wrong in one of them."""


def flip_bit(x: torch.Tensor, place: int, bit: int) -> torch.Tensor:
    """Return a copy of which one bit of one number differs; -1 stands for the sign."""
    kind, width = (torch.int32, 32) if x.element_size() == 4 else (torch.int16, 16)
    copy = x.clone()
    bit %= width
    mask = -(1 << bit) if bit == width - 1 else 1 << bit
    copy.view(kind)[place] ^= mask
    return copy


def run_search(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    shards: int,
    shard: torch.Tensor,
    wrong: tuple[int, int, int, int] | None,
    seed: int,
) -> dict[str, Any]:
    """Call the answer to find the wrong ranks.

    wrong: the rank with a wrong gradient, and its step, place and bit; None if all gradients are right.
    """
    calls = []

    def gradient(of: int, step: int) -> torch.Tensor:
        if of not in range(world_size) or step not in range(STEPS):
            raise ValueError(
                f"gradient({of}, {step}): ranks are 0 to {world_size - 1}, steps are 0 to {STEPS - 1}"
            )
        calls.append((of, step))
        made = torch.Generator().manual_seed(seed + 1000 * of + step)
        result = torch.randn(500, generator=made) * torch.randn(500, generator=made)
        if wrong and (rank, step) == wrong[:2]:
            result = flip_bit(result, *wrong[2:])
        return result

    with seed_hash(rank) as hashed:
        found = answer(rank, world_size, shards, shard.clone(), gradient)
    if isinstance(found, tuple):
        found = list(found)
    return {"found": found, "calls": len(calls), "hashed": hashed[0] if hashed else ""}


@contextmanager
def seed_hash(rank: int) -> Iterator[list[str]]:
    """Run the block with this rank's own seed of `hash`; record the kinds of values that the answer hashes.

    These ranks are forked from one process, so they share a seed. The processes of a real job do not,
    unless PYTHONHASHSEED is set.
    """
    kinds: list[str] = []
    unseeded = builtins.hash

    def seeded(x: Any) -> int:
        number = unseeded(x)
        kind = kind_with_seed(x)
        if not kind or sys._getframe(1).f_globals.get("__name__") != "__main__":
            return number
        kinds.append(kind)
        return unseeded((number, rank))

    builtins.hash = seeded
    try:
        yield kinds
    finally:
        builtins.hash = unseeded


def kind_with_seed(x: Any) -> str:
    """Return what makes the `hash` of a value differ between processes, or ""."""
    if isinstance(x, torch.Tensor):
        return "a tensor"
    if isinstance(x, (str, bytes, memoryview)):
        return "text" if isinstance(x, str) else "bytes"
    if isinstance(x, (tuple, frozenset)):
        return next(filter(None, map(kind_with_seed, x)), "")
    return ""
