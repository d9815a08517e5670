"""What exercises of notebook 16 share: a whole sequence, from which each rank gets some tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from helpers.checks.author import *


class Sequence(NamedTuple):
    """A whole sequence's q, k and v, (batch, heads, time, head_size), and the gradient of the output."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    grad: torch.Tensor

    def at(self, positions: torch.Tensor) -> tuple[Any, ...]:
        """Return the part of a rank that has the tokens at these positions."""
        return tuple(x[:, :, positions].contiguous() for x in self)

    def right(self) -> Reference:
        """Return what judges a rank's part; a gradient's error is that of the products that it sums."""
        of_scores = largest(self.grad) * max(1.0, largest(self.v))
        scale = {
            "output": largest(self.v),
            "gradient of q": of_scores * largest(self.k),
            "gradient of k": of_scores * largest(self.q),
            "gradient of v": largest(self.grad),
        }
        return Reference(scale, ignore=("result",))


def draw_sequence(draw: Draw, heads: int, length: int) -> Sequence:
    """Draw a sequence with logits of all sizes; in some, exp of a logit overflows."""
    dtype, size = draw.dtype(torch.float32, torch.float64), draw.whole(1, 4)
    shape, generator = (draw.whole(1, 2), heads, length, size), draw.generator()
    q, k, v, grad = (torch.randn(shape, generator=generator, dtype=dtype) for _ in range(4))
    return Sequence(draw.of(1, 1, 40) * q, k, v, grad)
