"""20.4: ranks, one of which has a wrong shard or flips a bit of its gradients."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

STEPS = 5
"""The number of steps that an answer may repeat. A wrong rank is wrong in one of these steps."""


def flip_bit(x: torch.Tensor, place: int, bit: int) -> torch.Tensor:
    """Return a copy in which one bit of one number differs. If `bit` is -1, the sign differs."""
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
    """Run the block with a separate seed of `hash` on this rank; record the kinds of hashed values.

    These ranks are forked from one process, so they share a seed. The processes of a real job have different
    seeds, unless PYTHONHASHSEED is set.
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
    """Return the kind of value inside `x` whose `hash` differs between processes, or ""."""
    if isinstance(x, torch.Tensor):
        return "a tensor"
    if isinstance(x, (str, bytes, memoryview)):
        return "text" if isinstance(x, str) else "bytes"
    if isinstance(x, (tuple, frozenset)):
        return next(filter(None, map(kind_with_seed, x)), "")
    return ""
