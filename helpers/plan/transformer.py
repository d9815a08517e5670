"""Build a transformer module from the numbers of a `Model`, for imagined ranks of any size.

It is gated like Llama, without biases, and with separate tables for input and output. Positions, which have
no parameters in Llama, are left out. The computed values are meaningless, but shapes, bytes and calls are
right.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from helpers.plan.model_size import Model


class Block(nn.Module):
    """Attention and a gated MLP, each after a norm and with a residual: (batch, tokens, hidden)."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.head = model.hidden // model.heads
        self.attention_norm = nn.RMSNorm(model.hidden)
        self.query = nn.Linear(model.hidden, model.hidden, bias=False)
        self.key = nn.Linear(model.hidden, model.kv_width, bias=False)
        self.value = nn.Linear(model.hidden, model.kv_width, bias=False)
        self.mix = nn.Linear(model.hidden, model.hidden, bias=False)
        self.mlp_norm = nn.RMSNorm(model.hidden)
        self.gate = nn.Linear(model.hidden, model.ffn_width, bias=False)
        self.up = nn.Linear(model.hidden, model.ffn_width, bias=False)
        self.down = nn.Linear(model.ffn_width, model.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.attention_norm(x)
        q, k, v = (self._heads(part(h)) for part in (self.query, self.key, self.value))
        own = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.mix(own.transpose(1, 2).flatten(2))
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))  # type: ignore[no-any-return]

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        """Split (batch, tokens, width) into (batch, heads, tokens, head). With TP, these are local heads."""
        return x.unflatten(-1, (-1, self.head)).transpose(1, 2)  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """Maps words (batch, tokens) to scores for the next words (batch * tokens, vocabulary)."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        if not model.gated:
            raise ValueError(f"{model.name} is not gated: only models like Llama are built.")
        self.table = nn.Embedding(model.vocabulary, model.hidden)
        self.blocks = nn.ModuleList(Block(model) for _ in range(model.layers))
        self.norm = nn.RMSNorm(model.hidden)
        self.output = nn.Linear(model.hidden, model.vocabulary, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.table(words)
        for block in self.blocks:
            x = block(x)
        return self.output(self.norm(x).flatten(0, 1))  # type: ignore[no-any-return]
