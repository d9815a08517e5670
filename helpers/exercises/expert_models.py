"""An expert of notebook 15, and what one process computes where every token goes to the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import linear


class Expert(nn.Module):
    """One layer with a tanh, made from its weight."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.clone())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.tanh(linear(tokens, self.weight))


@dataclass(frozen=True)
class MixtureTruth:
    """Of the dense mixture: output and gradients, and the expert and the gate of each token."""

    output: torch.Tensor
    gate: torch.Tensor
    choice: torch.Tensor
    of_x: torch.Tensor
    of_router: torch.Tensor
    of_experts: tuple[torch.Tensor, ...]


def mixture(
    x: torch.Tensor, router: torch.Tensor, weights: Sequence[torch.Tensor], grad: torch.Tensor
) -> MixtureTruth:
    """Give every token to its best expert, in one process, forward and back."""
    x, router = x.clone().requires_grad_(), router.clone().requires_grad_()
    experts = [Expert(weight) for weight in weights]
    gate, choice = (x @ router.T).softmax(1).max(1)
    every = torch.stack([expert(x) for expert in experts])
    output = gate[:, None] * every[choice, torch.arange(len(x))]
    wanted = torch.autograd.grad(output, (x, router, *(e.weight for e in experts)), grad)
    return MixtureTruth(
        output.detach(), gate.detach(), choice, wanted[0], wanted[1], tuple(wanted[2:])
    )
