"""Run answers of 15.6 inside the ranks: a transformer block sharded by torch over a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu

from helpers.exercises.nb15_tensor_parallel.in_ranks.spans import forward_and_backward
from helpers.exercises.shared.in_ranks.probe import copy_of


class Attention(nn.Module):
    """Attention with q, k, v and o as Linear layers, as in most model files."""

    def __init__(self, features: int, heads: int, biases: Mapping[str, bool]) -> None:
        super().__init__()
        self.head_size = features // heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(features, features, bias=biases[f"attention.{name}"]) for name in "qkvo"
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
    """The gated MLP with gate, up and down as Linear layers."""

    def __init__(self, features: int, hidden: int, biases: Mapping[str, bool]) -> None:
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=biases["mlp.gate"])
        self.up = nn.Linear(features, hidden, bias=biases["mlp.up"])
        self.down = nn.Linear(hidden, features, bias=biases["mlp.down"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.down(silu(self.gate(x)) * self.up(x))
        return result


class Block(nn.Module):
    """A transformer block of `norm`, `attention` and `mlp`, with each half added to its input."""

    LAYERS = tuple(f"attention.{n}" for n in "qkvo") + ("mlp.gate", "mlp.up", "mlp.down")

    def __init__(self, features: int, hidden: int, heads: int, biases: Mapping[str, bool]) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.attention = Attention(features, heads, biases)
        self.mlp = MLP(features, hidden, biases)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm(x))
        result: torch.Tensor = x + self.mlp(self.norm(x))
        return result

    @classmethod
    def of(cls, state: Mapping[str, torch.Tensor], heads: int) -> Block:
        """Build the block with these parameters."""
        hidden, features = state["mlp.up.weight"].shape
        biases = {name: f"{name}.bias" in state for name in cls.LAYERS}
        block = cls(features, hidden, heads, biases).to(state["norm.weight"].dtype)
        block.load_state_dict(dict(state))
        return block


@functools.cache
def _mesh(sizes: tuple[int, ...]) -> Any:
    """Return the mesh of these sizes, which is the same mesh for all cases of a world."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", sizes, mesh_dim_names=("a", "b")[: len(sizes)])


class BlockInputs(NamedTuple):
    """A mesh's sizes, the dimension to shard over, the block's parameters, its input, and its gradient."""

    sizes: tuple[int, ...]
    dimension: str
    state: Mapping[str, torch.Tensor]
    heads: int
    x: torch.Tensor
    grad: torch.Tensor


def run_parallel_block(
    answer: Callable[..., Any], rank: int, world_size: int, inputs: BlockInputs
) -> dict[str, Any] | None:
    """Call the answer to shard a block over a mesh; return this rank's parameters and results."""
    sizes, dimension, state, heads, x, grad = inputs
    block = Block.of(state, heads)
    model = answer(block, _mesh(sizes)[dimension])
    if not isinstance(model, nn.Module):
        raise TypeError(f"with_dtensor returns {type(model).__name__}, not a torch.nn.Module")
    x = x.clone().requires_grad_()
    shapes = {
        f"shape of {name}": str(tuple(getattr(p, "_local_tensor", p).shape))
        for name, p in model.named_parameters()
    }
    found = forward_and_backward(lambda: _full_tensor(model(x)), grad)
    if found is None:
        return None
    grads = {
        f"gradient of {name}": None if p.grad is None else _full_tensor(p.grad).detach().clone()
        for name, p in model.named_parameters()
    }
    same = "" if model is block else "the returned model is not the given one"
    return {
        "block": same,
        **shapes,
        "autograd": found["autograd"],
        "output": found["output"],
        "gradient of x": copy_of(x.grad),
        **grads,
    }


def _full_tensor(value: Any) -> Any:
    """Return a DTensor as a whole tensor, waiting for it if it is still in flight."""
    if hasattr(value, "full_tensor"):
        return value.full_tensor()
    return value + 0 if type(value).__name__ == "AsyncCollectiveTensor" else value
