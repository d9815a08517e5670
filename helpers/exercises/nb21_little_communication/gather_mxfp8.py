"""21.4 Gather a weight in 8 bits (20 min, ●●●○○)

- What else do the other ranks need to decode a rank's codes? And which dtype does gloo accept for a byte?
- largest = the largest absolute value of each block of 32. The scale is 2 to the power of log2(largest /
  448), rounded up. Codes: (block / scale).to(torch.float8_e4m3fn). Gather codes and scales, each as one byte,
  with `view(torch.uint8)`, and view the received bytes as float8 again. What should the scale of a block of
  zeros be?
- blocks = shard.view(-1, 32); scales = torch.exp2((largest.double() / 448).log2().ceil()).float(), and 1
  where largest is 0; scales.to(torch.float8_e8m0fnu).view(torch.uint8) is one byte per scale.
  dist.all_gather_single twice, then codes.view(torch.float8_e4m3fn).float() *
  scales.view(torch.float8_e8m0fnu).float(), in the weight's shape.
"""

import torch

from helpers.checks.author import *

BLOCK = 32
LARGEST_CODE = 448.0


def case(draw: Draw) -> Case:
    n, rows, columns = draw.ranks, draw.whole(1, 3), BLOCK * draw.of(1, 2, 3)
    generator = draw.generator()
    shards = []
    for _ in range(n):
        shard = torch.randn(rows * columns // BLOCK, BLOCK, generator=generator)
        shard *= 2.0 ** draw.whole(-12, 12)
        for block in shard:
            _make_difficult(block, draw)
        shards.append(shard.view(rows, columns))
    right = torch.cat([_read_codes(shard) for shard in shards])
    return Case(
        f"a shard of {rows} x {columns}",
        [(shard,) for shard in shards],
        right=right,
        tolerance=0,
        facts={"bytes": rows * columns + rows * columns // BLOCK},
        telling=n > 1,
    )


def _make_difficult(block: torch.Tensor, draw: Draw) -> None:
    """Change a block in place so that it is easy to choose a wrong scale."""
    way = draw.of(
        "plain", "negative", "at 448", "above 448", "an outlier", "zeros", "small", "large"
    )
    place, size = draw.whole(0, BLOCK - 1), 2.0 ** draw.whole(-6, 6)
    if way == "negative":
        block[place] = -3 * block.abs().max()
    elif way == "at 448":
        block.clamp_(-LARGEST_CODE * size, LARGEST_CODE * size)
        block[place] = LARGEST_CODE * size
    elif way == "above 448":
        block.clamp_(-LARGEST_CODE * size, LARGEST_CODE * size)
        block[place] = LARGEST_CODE * size * 1.125
    elif way == "an outlier":
        block[place] = 1e5 * block.abs().max()
    elif way == "zeros":
        block.zero_()
    elif way == "small":
        block *= 1e-12
    elif way == "large":
        block *= 1e12


def _read_codes(shard: torch.Tensor) -> torch.Tensor:
    """Return the values of the shard's codes, with scales found by halving and doubling."""
    blocks = shard.view(-1, BLOCK)
    read = torch.zeros_like(blocks)
    for block, out in zip(blocks, read, strict=True):
        largest, scale = float(block.abs().max()), 1.0
        if not largest:
            continue
        while largest / scale > LARGEST_CODE:
            scale *= 2
        while largest / (scale / 2) <= LARGEST_CODE:
            scale /= 2
        out.copy_((block / scale).to(torch.float8_e4m3fn).float() * scale)
    return read.view_as(shard)


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_gather",)),
        Calls(
            total_bytes="bytes",
            text="a byte for each number and one for each block",
            large_advice="A code is one byte, and the exponent of a scale is one byte.",
            why="A code is one byte, and the exponent of a scale is one byte.",
        ),
        WaitsForAll(),
    ),
    failed=(
        CrashAdvice(
            "Invalid scalar type",
            "gloo has no float8. Pass the same bytes as whole numbers, `codes.view(torch.uint8)`, and view "
            "the arrived bytes as float8.",
        ),
        HangAdvice("Every rank must make the same calls, in the same order."),
    ),
    sizes=(1, 2, 3, 4),
    count=20,
    keeps_input=True,
)
