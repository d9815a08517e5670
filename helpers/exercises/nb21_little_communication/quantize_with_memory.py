"""21.3 Error feedback (8 min, ●●○○○, further)

- The part that a call couldn't send is not lost, because this rank can compute it. When can the rank send
  this part?
- Quantize x + memory instead of x. The lost part is the difference between this sum and the decoded numbers.
- total = x + memory; codes, scales = quantize_blocks(total, block); memory.copy_(total - (codes * scales[:,
  None]).flatten()); return codes, scales.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb21_little_communication.in_ranks import run_quantize_with_memory

ROUNDING_ERROR = 1e-5


def case(draw: Draw) -> Case:
    block, count = draw.of(2, 4, 8), draw.whole(1, 3)
    steps = draw.whole(2, 5)
    xs = [torch.randn(count * block, generator=draw.generator()) for _ in range(steps)]
    if draw.of(True, True, False):
        for x in xs:  # next to a large number, small numbers are rounded to 0
            x[::block] = 200.0 + x[::block]
    return Case(
        f"{steps} calls, {count * block} numbers in blocks of {block}",
        [(xs, block)],
        right=make_judge(xs, block),
        like=None,
        facts={"block": block},
    )


def make_judge(xs: list[torch.Tensor], block: int) -> Any:
    """Return the judge of all calls, which judges each call by the memory that the call received."""

    def judge(got: Any, rank: int) -> Finding | None:
        if not isinstance(got, list) or len(got) != len(xs):
            return Finding("it does not return codes and scales", "Return a pair: codes, scales.")
        before = torch.zeros_like(xs[0])
        for call, (x, each) in enumerate(zip(xs, got, strict=True), 1):
            codes, scales, memory, kept = each
            if not kept:
                return Finding(
                    f"call {call}: `x` has changed",
                    "The caller still needs `x`, so work on a copy.",
                )
            if tuple(codes.shape) != (len(x) // block, block) or scales.shape != codes.shape[:1]:
                return Finding(f"call {call}: codes have shape {tuple(codes.shape)}")
            if (codes.dtype, scales.dtype, memory.dtype) != (torch.int8, x.dtype, x.dtype):
                return Finding(f"call {call}: codes are {codes.dtype}, scales {scales.dtype}")
            if memory.shape != x.shape:
                return Finding(f"call {call}: memory has shape {tuple(memory.shape)}")
            read = (codes * scales[:, None]).flatten()
            found = _judge_call(call, x, read, before, memory, block)
            if found is not None:
                return found
            before = memory
        return None

    return judge


def _judge_call(
    call: int,
    x: torch.Tensor,
    read: torch.Tensor,
    before: torch.Tensor,
    memory: torch.Tensor,
    block: int,
) -> Finding | None:
    room = ROUNDING_ERROR * float(max(x.abs().max(), before.abs().max()))
    wanted = x + before
    lost = wanted - read
    step = wanted.view(-1, block).abs().amax(1).repeat_interleave(block) / 254
    wrong = ~(lost.abs() <= step * (1 + 1e-4) + room)
    if wrong.any():
        i = int(lost.abs().argmax())
        return Finding(
            f"call {call}: number {i} is sent as {read[i]:.5g}, but x + memory is {wanted[i]:.5g}"
        )
    if not ((memory - lost).abs() <= room).all():
        i = int((memory - lost).abs().argmax())
        return Finding(
            f"call {call}: memory is {memory[i]:.5g} at number {i}, but {lost[i]:.5g} was lost"
        )
    return None


EXERCISE = Exercise(case, kind=Kind.MODULE, driver=run_quantize_with_memory, sizes=(1,))
