"""Cases of the exercises of notebook 04: what each rank has, and what it must have afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from helpers.exercises.draws import describe, tensor, tensors
from helpers.exercises.model import Case

_LARGE = 1 << 60
"""Near it two neighbouring whole numbers are one and the same float64."""
_FAR = 10_000
"""So far from zero that float32 is too coarse for squares."""


def broadcast_from(rng: random.Random) -> Iterator[Case]:
    sizes: tuple[tuple[int, int, tuple[int, ...], torch.dtype], ...] = (
        (2, 1, (3,), torch.float32),
        (3, 2, (2, 2), torch.int64),
        (4, 1, (5,), torch.float64),
    )
    for world_size, src, shape, dtype in sizes:
        x = tensor(rng, *shape, dtype=dtype)
        yield Case(
            f"{describe(world_size, shape, dtype)}, from rank {src}",
            world_size,
            [(x if rank == src else None, shape, dtype, src) for rank in range(world_size)],
            [x] * world_size,
        )


def scatter_rows(rng: random.Random) -> Iterator[Case]:
    for world_size, rows, columns, src, dtype in (
        (2, 4, 3, 1, torch.float32),
        (3, 7, 2, 0, torch.int64),
        (5, 7, 1, 3, torch.float32),
    ):
        x = tensor(rng, rows, columns, dtype=dtype)
        x[1] = 0  # a row of zeros is a row like any other
        blank = torch.zeros_like(x)
        yield Case(
            f"{describe(world_size, [rows, columns], dtype)}, from rank {src}",
            world_size,
            [(x if rank == src else blank, src) for rank in range(world_size)],
            [x[_share(rows, world_size, rank)] for rank in range(world_size)],
        )


def _share(count: int, world_size: int, rank: int) -> slice:
    """Give what rank `rank` gets of `count` things: ⌈count / world_size⌉ each, the last ones less."""
    each = -(-count // world_size)
    return slice(rank * each, (rank + 1) * each)


def padded_bytes(case: Case, rank: int) -> int:
    x = case.inputs[rank][0]
    each = -(-len(x) // case.world_size)
    return int(each * case.world_size * x[0].numel() * x.element_size())


def gather_in_order(rng: random.Random) -> Iterator[Case]:
    for world_size, total, dst, dtype in (
        (2, 6, 1, torch.float32),
        (3, 7, 0, torch.int64),
        (4, 9, 2, torch.float64),
    ):
        wanted = tensor(rng, total, dtype=dtype)
        each = -(-total // world_size)
        padded = torch.cat([wanted, wanted])[: each * world_size]  # as DistributedSampler pads
        yield Case(
            f"{world_size} ranks, {total} samples, to rank {dst}",
            world_size,
            [(padded[rank::world_size].clone(), total, dst) for rank in range(world_size)],
            [wanted if rank == dst else None for rank in range(world_size)],
        )


def global_mean_and_variance(rng: random.Random) -> Iterator[Case]:
    for lengths, dtype, offset in (
        ((3, 5), torch.float32, 0),
        ((2, 4, 0, 7), torch.float64, 0),
        ((4, 4, 6), torch.float32, _FAR),
        ((1, 3, 2, 5, 4), torch.int64, 100),
    ):
        parts = [tensor(rng, n, dtype=dtype) + offset for n in lengths]
        while offset == _FAR and not _needs_float64(parts):
            parts = [tensor(rng, n, dtype=dtype) + offset for n in lengths]
        whole = torch.cat(parts).double()
        answer = (whole.mean().item(), whole.var(correction=0).item())
        around = f", all near {offset:,}" if offset else ""
        name = "" if dtype == torch.float32 else f", {str(dtype).removeprefix('torch.')}"
        yield Case(
            f"{len(lengths)} ranks with {', '.join(map(str, lengths))} numbers{around}{name}",
            len(lengths),
            [(part,) for part in parts],
            [answer] * len(lengths),
            tolerance=1e-5,
        )


def _needs_float64(parts: list[torch.Tensor]) -> bool:
    """Tell whether float32 goes wrong on these numbers, and not by luck right, as it may."""
    exact = torch.stack([part.double().square().sum() for part in parts])
    early = torch.stack([part.square().sum().double() for part in parts])
    errors = [(wrong - exact).sum().abs().item() for wrong in (exact.float().double(), early)]
    return min(errors) >= 1


def global_argmax(rng: random.Random) -> Iterator[Case]:
    for lengths, dtype, kind in (
        ((4, 4), torch.float32, "different"),
        ((2, 5, 3), torch.float32, "all negative"),
        ((4, 3, 6, 2), torch.float64, "equal largest"),
        ((3, 1, 4), torch.int64, "very large"),
    ):
        parts = [tensor(rng, n, dtype=dtype) for n in lengths]
        owner = len(lengths) - 2
        top = {"all negative": -1, "very large": _LARGE + 3}.get(kind, 90)
        if kind == "all negative":
            parts = [part - 60 for part in parts]
        if kind == "very large":
            parts = [part.clamp(max=2) + _LARGE for part in parts]
        n = lengths[owner]
        index = rng.randrange(min(1, n - 1), n - (kind == "equal largest"))
        parts[owner][index] = top
        if kind == "equal largest":
            parts[owner][index + 1] = top
            parts[owner + 1][0] = top  # the higher rank has the lower index
        yield Case(
            f"{len(lengths)} ranks with {', '.join(map(str, lengths))} numbers, {kind}",
            len(lengths),
            [(part,) for part in parts],
            [(owner, index)] * len(lengths),
        )


def transpose_blocks(rng: random.Random) -> Iterator[Case]:
    for world_size, rows, columns, dtype in (
        (2, 4, 6, torch.float32),
        (3, 3, 6, torch.int64),
        (4, 8, 4, torch.float64),
        (3, 6, 6, torch.float32),
    ):
        whole = tensor(rng, rows, columns, dtype=dtype) + 20 * torch.arange(rows)[:, None].to(dtype)
        transposed = whole.T.contiguous()
        yield Case(
            f"{world_size} ranks, a {rows}x{columns} matrix, {str(dtype).removeprefix('torch.')}",
            world_size,
            [(part.clone(),) for part in whole.chunk(world_size)],
            [part.clone() for part in transposed.chunk(world_size)],
        )


def own_bytes(case: Case, rank: int) -> int:
    x = case.inputs[rank][0]
    return int(x.numel() * x.element_size())


def split_sum(rng: random.Random) -> Iterator[Case]:
    for world_size, length, dtype in (
        (2, 6, torch.float32),
        (3, 7, torch.int64),
        (4, 5, torch.float64),
        (5, 11, torch.float32),
    ):
        mine = tensors(rng, world_size, length, dtype=dtype)
        total = torch.stack(mine).sum(0)
        yield Case(
            describe(world_size, [length], dtype),
            world_size,
            [(x,) for x in mine],
            [total[_share(length, world_size, rank)] for rank in range(world_size)],
        )


def contiguous_first(rng: random.Random) -> Iterator[Case]:
    for world_size, rows, columns, src, turned in (
        (2, 2, 4, 0, False),
        (3, 4, 3, 2, False),
        (2, 3, 6, 1, True),
        (4, 3, 8, 1, True),
    ):
        x = tensor(rng, columns, rows).T if turned else tensor(rng, rows, columns)
        blank = torch.zeros_like(x)  # keeps the strides of a transposed view
        view = ", a transposed view" if turned else ""
        yield Case(
            f"{describe(world_size, [rows, columns])}, from rank {src}{view}",
            world_size,
            [(x if rank == src else blank, src) for rank in range(world_size)],
            [part.contiguous() for part in x.chunk(world_size, dim=1)],
        )
