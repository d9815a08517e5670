"""Code for exercises of notebook 16: a whole sequence, of which each rank gets some tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from helpers.checks.author import *
from helpers.views.traffic_ledger import calls_by_phase


class Sequence(NamedTuple):
    """A whole sequence's q, k and v, (batch, heads, time, head_size), and the gradient of the output.

    k and v may have a single head, shared by all heads of q.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    grad: torch.Tensor

    def part_at(self, positions: torch.Tensor) -> tuple[Any, ...]:
        """Return the parts of all tensors for a rank that holds the tokens at these positions."""
        return tuple(x[:, :, positions].contiguous() for x in self)

    def describe(self) -> str:
        """Return the sizes and the dtype in words."""
        batch, heads, _, size = self.q.shape
        shared = ", one head of keys" * (self.k.shape[1] < heads)
        return f"{(batch, heads)} x {size} of {self.q.dtype}{shared}"

    def make_judge(self) -> Reference:
        """Return the judge of a rank's part."""
        return Reference(self.error_scales(), ignore=("result",))

    def error_scales(self) -> dict[str, float]:
        """Return the scale of each part. A gradient's error depends on the size of the summed products."""
        score_scale = largest(self.grad) * max(1.0, largest(self.v))
        return {
            "output": largest(self.v),
            "gradient of q": score_scale * largest(self.k),
            "gradient of k": score_scale * largest(self.q),
            "gradient of v": largest(self.grad),
        }

    def dense_attention(self, visible: torch.Tensor) -> dict[str, torch.Tensor]:
        """Attend in one process, where `visible` (queries, keys) is true; return output and gradients."""
        dtype = self.q.dtype
        q, k, v = (x.to(torch.float64, copy=True).requires_grad_() for x in self[:3])
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        out = scores.masked_fill(~visible, -torch.inf).softmax(-1) @ v
        grads = torch.autograd.grad(out, (q, k, v), self.grad.double())
        return {
            n: x.detach().to(dtype) for n, x in zip(self.error_scales(), (out, *grads), strict=True)
        }


def ring_byte_limits(n: int, block: int, numbers: int) -> dict[str, int]:
    """Return the bytes that a rank may send to pass k and v, `block` bytes each, and `numbers` around.

    In the result, "forward" is the limit for sending them once, and "all" adds backward, which sends k and v
    once more with their gradients.
    """
    once = (n - 1) * (2 * block + numbers)
    return {"forward": once, "all": once + n * (4 * block + numbers)}


def find_excess_in_forward(trace: Trace, case: Case) -> str:
    """Return the rank that sends more in forward than keys, values and positions once around the ring."""
    for rank in range(case.world_size):
        calls = calls_by_phase(trace, rank).get("forward", [])
        sent, most = sum(c.nbytes for c in calls if c.op == "send"), case.facts["forward"]
        if sent > most:
            return (
                f"rank {rank} sends {sent:,} bytes in forward, but {most:,} are enough. Pass on keys, "
                "values and positions world_size - 1 times: then each rank has seen all of them."
            )
    return ""


def draw_sequence(draw: Draw, heads: int, length: int, *, may_share: bool = False) -> Sequence:
    """Draw a sequence with logits of all sizes; in some sequences, exp of a logit overflows.

    may_share: in most sequences, k and v have one head.
    """
    dtype, size = draw.dtype(torch.float32, torch.float64), draw.whole(1, 4)
    shape, generator = (draw.whole(1, 2), heads, length, size), draw.generator()
    q, k, v, grad = (torch.randn(shape, generator=generator, dtype=dtype) for _ in range(4))
    if may_share and torch.rand((), generator=generator) < 0.7:
        k, v = (x[:, :1].contiguous() for x in (k, v))
    return Sequence(draw.of(1, 1, 40) * q, k, v, grad)
