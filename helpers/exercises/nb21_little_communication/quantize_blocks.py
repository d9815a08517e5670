"""21.1 Quantize by blocks (8 min, ●●○○○)

- The largest number of a block, ignoring its sign, should become 127. So how large is one step?
- scales = largest / 127, one for each block. To get the codes, divide the numbers by their block's scale and
  round. If a block is all zeros, what can you divide by?
- blocks = x.view(-1, block); scales = blocks.abs().amax(dim=1) / 127; codes = (blocks /
  scales.clamp(min=1e-30)[:, None]).round().to(torch.int8); return codes, scales.
"""

from typing import Any

import torch

from helpers.checks.author import *

ROUNDING_FACTOR = 1.0 + 1e-4
"""The tolerance for float32's rounding, as a factor that multiplies half a step."""
SHAPE_ADVICE = (
    "`codes` should be torch.int8 of shape (blocks, {block}), and `scales` torch.float32 with one number "
    "for each block."
)

SIGN_ADVICE = (
    "The scale comes from the largest value, sign included, so negative numbers may exceed it. Take abs() "
    "before the maximum."
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
        right=make_judge(x),
        like=(x, x),
        facts={"block": block},
    )


def make_judge(x: torch.Tensor) -> Any:
    """Return the judge of codes and scales, which compares their products with x of shape (blocks, block)."""

    def judge(got: Any, rank: int) -> Finding | None:
        codes, scales = got
        wanted = (tuple(x.shape), (len(x),), torch.int8, torch.float32)
        if (tuple(codes.shape), tuple(scales.shape), codes.dtype, scales.dtype) != wanted:
            what = (
                f"codes is {codes.dtype} of shape {tuple(codes.shape)}, scales is {scales.dtype} of shape "
                f"{tuple(scales.shape)}"
            )
            return Finding(what, SHAPE_ADVICE)
        read, room = codes * scales[:, None], x.abs().amax(1, keepdim=True) / 254 * ROUNDING_FACTOR
        wrong = ~((read - x).abs() <= room)
        if not wrong.any():
            return None
        k, i = map(int, wrong.nonzero()[0])
        what = (
            f"number {i} of block {k} is {x[k, i]:.4g} but is read as {read[k, i]:.4g}; half a step is "
            f"{room[k, 0]:.3g}"
        )
        signed = x.amax(1) / 127
        has_sign = bool(signed[k] < x[k].abs().max() / 127) and torch.allclose(scales[k], signed[k])
        return Finding(what, SIGN_ADVICE if has_sign else "")

    return judge


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,), keeps_input=True)
