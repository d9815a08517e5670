"""The dense models that notebook 13's answers cut into parts, and the oracle of its checks."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import linear, scaled_dot_product_attention, silu


def gated_mlp(
    x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    """Compute the MLP of a Llama block; the hidden elements are rows of gate and up."""
    return linear(silu(linear(x, gate)) * linear(x, up), down)


def attention(
    x: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    head_size: int,
    causal: bool = True,
) -> torch.Tensor:
    """Compute (causal) self-attention; the rows of the first three weights belong to heads, in order."""
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=causal)
    return linear(mixed.transpose(1, 2).flatten(2), out)


class Attention(nn.Module):
    """Attention with q, k, v and o as Linear layers, as most model files have them."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.head_size = features // heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(features, features, bias=False) for _ in range(4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.head_size)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        result: torch.Tensor = self.o(mixed.transpose(1, 2).flatten(2))
        return result


class MLP(nn.Module):
    """The gated MLP with gate, up and down as Linear layers; `down` has a bias."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.down(silu(self.gate(x)) * self.up(x))
        return result


class Block(nn.Module):
    """A transformer block: `norm`, `attention` and `mlp`, each half added to its input."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.attention = Attention(features, heads)
        self.mlp = MLP(features, 2 * features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm(x))
        result: torch.Tensor = x + self.mlp(self.norm(x))
        return result

    @classmethod
    def seeded(cls, seed: int, features: int, heads: int) -> Block:
        """Build a block in float64; all in it depends on `seed` alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(features, heads).double()
