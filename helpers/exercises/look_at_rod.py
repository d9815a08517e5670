"""What a rod becomes in one process, rightly and in the usual wrong ways, to name a learner's mistake.

`nb03_nonblocking_p2p` takes what is right from here, and the first thing to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Blocks = list[torch.Tensor]


def jacobi(rod: torch.Tensor, left: float, right: float, sweeps: int) -> torch.Tensor:
    """Give the rod after `sweeps` Jacobi sweeps in one process, its two ends held fixed."""
    ends = rod.new_tensor([left]), rod.new_tensor([right])
    for _ in range(sweeps):
        around = torch.cat([ends[0], rod, ends[1]])
        rod = (around[:-2] + around[2:]) / 2
    return rod


def look_at_rod(inputs: Sequence[Sequence[Any]], values: Sequence[Any]) -> str:
    """Name the usual mistake that gives these blocks; inputs[r] is (block, left, right, sweeps)."""
    blocks: Blocks = [given[0] for given in inputs]
    _, left, right, sweeps = inputs[0]
    for make, words in _MISTAKES:
        wrong = make(blocks, float(left), float(right), int(sweeps))
        if all(_close(got, one) for got, one in zip(values, wrong, strict=True)):
            return words
    if len(blocks) == 1:
        return "With one rank nothing is exchanged: `left` and `right` stand at the two ends."
    return _first_wrong_cell(blocks, float(left), float(right), int(sweeps), values)


def _first_wrong_cell(
    blocks: Blocks, left: float, right: float, sweeps: int, values: Sequence[Any]
) -> str:
    """Send the learner to the first cell that is wrong, and say what it is made of."""
    lengths = [len(block) for block in blocks]
    right_ones = jacobi(torch.cat(blocks), left, right, sweeps).split(lengths)
    for rank, (got, wanted) in enumerate(zip(values, right_ones, strict=True)):
        if _close(got, wanted):
            continue
        if not isinstance(got, torch.Tensor) or got.shape != wanted.shape:
            return ""
        cell = int((got - wanted).abs().argmax()) if wanted.numel() else 0
        last = lengths[rank] - 1
        if 0 < cell < last:
            return f"Follow cell {cell} of rank {rank}: does one sweep read only old values?"
        which = "only" if last == 0 else "first" if cell == 0 else "last"
        before = "`left`" if rank == 0 else f"the last cell of rank {rank - 1}"
        after = "`right`" if rank == len(blocks) - 1 else f"the first cell of rank {rank + 1}"
        sides = {"only": f"{before} and {after}", "first": f"{before} and its right neighbour"}
        mean_of = sides.get(which, f"its left neighbour and {after}")
        return (
            f"Follow the {which} cell of rank {rank} through one sweep: it becomes the mean of "
            f"{mean_of}, both as they were before the sweep."
        )
    return ""


def _alone(blocks: Blocks, left: float, right: float, sweeps: int) -> Blocks:
    return [jacobi(block, left, right, sweeps) for block in blocks]


def _stale(blocks: Blocks, left: float, right: float, sweeps: int) -> Blocks:
    halos = _with_halos(blocks, left, right)
    return [jacobi(block, before, after, sweeps) for before, block, after in halos]


def _ring(blocks: Blocks, left: float, right: float, sweeps: int) -> Blocks:
    rod = torch.cat(blocks)
    for _ in range(sweeps):
        rod = (rod.roll(1) + rod.roll(-1)) / 2
    return list(rod.split([len(block) for block in blocks]))


def _in_place(blocks: Blocks, left: float, right: float, sweeps: int) -> Blocks:
    for _ in range(sweeps):
        blocks = [_gauss_seidel(*padded) for padded in _with_halos(blocks, left, right)]
    return blocks


def _gauss_seidel(before: float, block: torch.Tensor, after: float) -> torch.Tensor:
    cells = [before, *block.tolist(), after]
    for i in range(1, len(cells) - 1):
        cells[i] = (cells[i - 1] + cells[i + 1]) / 2
    return block.new_tensor(cells[1:-1])


def _exchanged(blocks: Blocks, left: float, right: float, sweeps: int) -> Blocks:
    """Each rank but the first and the last has its two halos the wrong way round."""
    for _ in range(sweeps):
        halos = _with_halos(blocks, left, right)
        inner = range(1, len(blocks) - 1)
        blocks = [
            jacobi(block, after, before, 1) if r in inner else jacobi(block, before, after, 1)
            for r, (before, block, after) in enumerate(halos)
        ]
    return blocks


def _one_less(blocks: Blocks, left: float, right: float, sweeps: int) -> Blocks:
    rod = jacobi(torch.cat(blocks), left, right, sweeps - 1)
    return list(rod.split([len(block) for block in blocks]))


def _with_halos(
    blocks: Blocks, left: float, right: float
) -> list[tuple[float, torch.Tensor, float]]:
    befores = [left, *(float(block[-1]) for block in blocks[:-1])]
    afters = [*(float(block[0]) for block in blocks[1:]), right]
    return list(zip(befores, blocks, afters, strict=True))


_MISTAKES: tuple[tuple[Callable[[Blocks, float, float, int], Blocks], str], ...] = (
    (
        _one_less,
        "This is the rod one sweep earlier: are there as many sweeps as asked for?",
    ),
    (
        _alone,
        "Each block was treated as if it were the whole rod: its neighbours' cells are missing.",
    ),
    (
        _stale,
        "The halos are those of the first sweep: exchange them again before each sweep.",
    ),
    (
        _ring,
        "The rod was closed to a ring: rank 0 has `left` before its first cell, not a neighbour.",
    ),
    (
        _in_place,
        "A sweep reads old values only: here a cell uses its left neighbour's new value.",
    ),
    (
        _exchanged,
        "The two halos are the wrong way round: the last cell of rank - 1 comes first.",
    ),
)


def _close(got: object, wanted: torch.Tensor) -> bool:
    return (
        isinstance(got, torch.Tensor)
        and got.shape == wanted.shape
        and got.dtype == wanted.dtype
        and torch.allclose(got, wanted, rtol=1e-5, atol=1e-5)
    )
