"""What exercises of notebook 16 share: a dense attention to compare with, and who may see whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from helpers.checks.author import *


@dataclass(frozen=True)
class Dense:
    """A whole sequence's q, k and v, (batch, heads, time, head_size), and the gradient of the output."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    grad: torch.Tensor

    def attend(self, visible: torch.Tensor) -> Parts:
        """Attend where `visible` (time, time) says so; forward and backward."""
        q, k, v = (x.clone().requires_grad_() for x in (self.q, self.k, self.v))
        output = mix(q, k, v, visible)
        output.backward(self.grad)
        return {
            "output": output.detach(),
            "gradient of q": q.grad,
            "gradient of k": k.grad,
            "gradient of v": v.grad,
        }


def mix(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """Mix values by their weights; without softmax, which starts threads."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~visible, -1e30)
    # the largest is taken away first: exp would overflow
    weights: torch.Tensor = (scores - scores.detach().amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


def draw_dense(draw: Draw, heads: int, length: int) -> Dense:
    """Draw a sequence with logits of all sizes; in some, exp of a logit overflows."""
    dtype, size = draw.dtype(torch.float32, torch.float64), draw.whole(1, 4)
    shape, generator = (draw.whole(1, 2), heads, length, size), draw.generator()
    q, k, v, grad = (torch.randn(shape, generator=generator, dtype=dtype) for _ in range(4))
    return Dense(draw.of(1, 1, 40) * q, k, v, grad)


def share(parts: Parts, positions: torch.Tensor) -> Parts:
    """Give the part of a rank that has the tokens at these positions."""
    return {name: part[:, :, positions].contiguous() for name, part in parts.items()}


def shares(parts: Parts, own: Sequence[torch.Tensor]) -> list[Parts]:
    """Give each rank's part."""
    return [share(parts, positions) for positions in own]


def judged(whole: Dense, right: Sequence[Parts]) -> ByName:
    """Give what judges each rank's part; a gradient's error is that of the products that it sums."""
    of_scores = largest(whole.grad) * max(1.0, largest(whole.v))
    scale = {
        "output": largest(whole.v),
        "gradient of q": of_scores * largest(whole.k),
        "gradient of k": of_scores * largest(whole.q),
        "gradient of v": largest(whole.grad),
    }
    return ByName(right, scale)
