"""21.1 Quantize by blocks (8 min, ●●○○○)

- The largest number of a block, without its sign, becomes 127. What is one step worth then?
- scales = largest / 127, one for each block; codes are the numbers divided by their block's scale, rounded.
  Where a block is all zeros, what do you divide by?
- blocks = x.view(-1, block); scales = blocks.abs().amax(dim=1) / 127; codes = (blocks /
  scales.clamp(min=1e-30)[:, None]).round().to(torch.int8); return codes, scales.
"""

from typing import Any

import torch

from helpers.checks.author import *

ROUNDING = 1.0 + 1e-4
"""What float32 may add to half a step."""
CUT = "Converting to int8 cuts the fraction off, towards zero: round before, `.round().to(torch.int8)`."
WRAPPED = (
    "int8 ends at 127: a code of 128 wraps around to -128. One step is the block's largest number, without "
    "its sign, divided by 127."
)
BOUNDED = (
    "Scales cannot get smaller than some bound here, so that blocks of tiny numbers are lost: guard "
    "against a scale of 0 only."
)
ONE_SCALE = "All blocks have one scale here: each block has its own, by its own largest number."
SIGNED = "The largest number counts without its sign: `abs()` before the maximum."
CODES = (
    "codes is torch.int8, of shape (blocks, {block}); scales is torch.float32, one for each block."
)


def case(draw: Draw) -> Case:
    block, count = draw.of(2, 4, 5, 8), draw.whole(1, 5)
    x = torch.randn(count, block, generator=draw.generator())
    way = draw.of("plain", "an outlier", "a block of zeros", "negative", "tiny", "ends at 127")
    k = draw.whole(0, count - 1)
    if way == "an outlier":
        x[k, draw.whole(0, block - 1)] = draw.of(-300.0, 300.0)
    elif way == "a block of zeros":
        x[k] = 0
    elif way == "negative":
        x = -x.abs() - 1
    elif way == "tiny":
        x *= 1e-20
    else:
        x[k, 0] = x[k].abs().max() + 1
    return Case(
        f"{count} blocks of {block}, {way}",
        [(x.flatten(), block)],
        right=judge_of(x),
        mistakes=[Mistake(is_it, words) for is_it, words in mistakes_of(x)],
        like=(x, x),
        facts={"block": block},
    )


def judge_of(x: torch.Tensor) -> Any:
    """Judge codes and scales by what is read out of them; x is (blocks, block)."""

    def judge(got: Any, rank: int) -> Finding | None:
        codes, scales = got
        wanted = (tuple(x.shape), (len(x),), torch.int8, torch.float32)
        if (tuple(codes.shape), tuple(scales.shape), codes.dtype, scales.dtype) != wanted:
            what = (
                f"codes is {codes.dtype} of shape {tuple(codes.shape)}, scales is {scales.dtype} of shape "
                f"{tuple(scales.shape)}"
            )
            return Finding(what, CODES)
        read, room = codes * scales[:, None], x.abs().amax(1, keepdim=True) / 254 * ROUNDING
        wrong = ~((read - x).abs() <= room)
        if not wrong.any():
            return None
        k, i = map(int, wrong.nonzero()[0])
        return Finding(
            f"number {i} of block {k} is {x[k, i]:.4g} and is read as {read[k, i]:.4g}; half a step is "
            f"{room[k, 0]:.3g}"
        )

    return judge


def mistakes_of(x: torch.Tensor) -> list[tuple[Any, str]]:
    """Give what tells a usual mistake by codes and scales of the right shape."""
    largest = x.abs().amax(1)

    def shaped(test: Any) -> Any:
        def is_it(got: Any, rank: int) -> bool:
            codes, scales = got
            fits = codes.shape == x.shape and scales.shape == largest.shape
            return bool(fits and test(codes.float(), scales.float()))

        return is_it

    def near(a: torch.Tensor, b: torch.Tensor) -> bool:
        counts = largest > 0
        return bool(torch.allclose(a[counts], b[counts], rtol=1e-4, atol=0))

    def is_cut(codes: torch.Tensor, scales: torch.Tensor) -> bool:
        cut = (x / scales.clamp(min=1e-35)[:, None]).trunc()
        return bool((codes - cut).abs().max() <= 0) and near(scales, largest / 127)

    def is_wrapped(codes: torch.Tensor, scales: torch.Tensor) -> bool:
        return bool(((codes == -128) & (x > 0)).any())

    def is_bounded(codes: torch.Tensor, scales: torch.Tensor) -> bool:
        tiny = (largest > 0) & (largest < 1e-12)
        return bool((tiny & (scales > largest / 60)).any())

    def is_one(codes: torch.Tensor, scales: torch.Tensor) -> bool:
        return len(scales) > 1 and bool((scales == scales[0]).all() and scales[0] > 0)

    def is_signed(codes: torch.Tensor, scales: torch.Tensor) -> bool:
        return near(scales, x.amax(1) / 127) and not near(scales, largest / 127)

    return [
        (shaped(is_bounded), BOUNDED),
        (shaped(is_wrapped), WRAPPED),
        (shaped(is_signed), SIGNED),
        (shaped(is_one), ONE_SCALE),
        (shaped(is_cut), CUT),
    ]


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,), keeps_input=True)
