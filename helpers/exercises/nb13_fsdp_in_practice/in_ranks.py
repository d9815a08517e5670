"""Run answers of notebook 13 inside the ranks: shard models, take steps, and count bytes.

Each function returns plain values by name. A string describes a problem not visible in values; "" means none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from helpers.checks.live_tensors import PATIENCE_S, LiveTensorCounter, storage_bytes, tensors_held
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.fsdp2 import build_sequential
from helpers.exercises.shared.in_ranks.probe import with_grads
from helpers.ranks.rank_context import span

Sizes = Sequence[tuple[int, ...]]
Weights = Mapping[str, torch.Tensor]


class ClipInputs(NamedTuple):
    """The gradients of a rank's parameters, the parameters' sizes, and the maximum norm."""

    sharded: Sequence[torch.Tensor | None]
    sharded_sizes: Sizes
    replicated: Sequence[torch.Tensor | None]
    replicated_sizes: Sizes
    max_norm: float
    norm_type: float


def run_clip(
    answer: Callable[..., Any], rank: int, world_size: int, inputs: ClipInputs
) -> dict[str, Any] | None:
    """Call the answer to clip the gradients of parameters of these sizes; return the gradients."""
    sharded, sharded_sizes, replicated, replicated_sizes, max_norm, norm_type = inputs
    dtype = next(g.dtype for g in (*sharded, *replicated, torch.zeros(0)) if g is not None)
    own = with_grads((torch.ones(size, dtype=dtype) for size in sharded_sizes), sharded)
    copies = with_grads((torch.ones(size, dtype=dtype) for size in replicated_sizes), replicated)
    norm = answer(list(own), list(copies), max_norm, norm_type)
    if norm is None:
        return None
    if not isinstance(norm, torch.Tensor) or norm.dim():
        kind = f"a tensor of shape {tuple(norm.shape)}" if isinstance(norm, torch.Tensor) else norm
        return {"norm": f"{kind} is not a 0-d tensor"}
    found: dict[str, Any] = {"norm": norm.detach().to(dtype)}
    for name, params in (("sharded", own), ("replicated", copies)):
        found |= {f"{name}[{i}]": p.grad for i, p in enumerate(params)}
    return found


# --- activations ----------------------------------------------------------------------------------


class Block(nn.Module):
    """A residual MLP with a random mask. It counts the runs of its forward."""

    def __init__(self, up: torch.Tensor, down: torch.Tensor, shift: torch.Tensor) -> None:
        super().__init__()
        self.up, self.down = nn.Parameter(up.clone()), nn.Parameter(down.clone())
        self.shift = nn.Parameter(shift.clone())
        self.runs = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, width)."""
        self.runs += 1
        hidden = nn.functional.gelu(torch.addmm(self.shift, x, self.up))
        return x + (hidden * (torch.rand_like(hidden) < 0.5)) @ self.down


class Stack(nn.Module):
    """A sequence of blocks run by a given function."""

    def __init__(self, blocks: Sequence[nn.Module], run: Callable[..., Any], *options: Any) -> None:
        super().__init__()
        self.blocks, self.run, self.options = nn.ModuleList(blocks), run, options

    def forward(self, x: torch.Tensor) -> Any:
        """Call the function as run(blocks, x, *options)."""
        return self.run(list(self.blocks), x, *self.options)


class CheckpointInputs(NamedTuple):
    """The blocks' weights and this rank's samples. max_bytes: a sufficient number of bytes after forward."""

    weights: Sequence[tuple[torch.Tensor, ...]]
    x: torch.Tensor
    grad: torch.Tensor
    interval: int
    seed: int
    x_requires_grad: bool
    max_bytes: int


def run_checkpointed(
    answer: Callable[..., Any], rank: int, world_size: int, inputs: CheckpointInputs
) -> dict[str, Any] | None:
    """Run the answer's stack under fully_shard, forward and backward."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world_size,))
    weights, x, grad, interval, seed, x_requires_grad, max_bytes = inputs
    blocks = [Block(*own) for own in weights]
    model = Stack(blocks, answer, interval)
    for module in (*blocks, model):
        fully_shard(module, mesh=mesh)
    torch.manual_seed(seed)
    with tensors_held() as held:
        given = x.clone().requires_grad_(x_requires_grad)
        with span("forward"):
            output = model(given)
        if not isinstance(output, torch.Tensor):
            return None
        found: dict[str, Any] = {"output": output.detach().clone()}
        found["held"] = _describe_excess(held, [found["output"], *model.parameters()], max_bytes)
        if output.requires_grad and output.shape == grad.shape:
            with span("backward"):
                output.backward(grad)
    held_too_much = found.pop("held")
    for name, p in model.named_parameters():
        local = None if p.grad is None else p.grad.to_local()  # type: ignore[attr-defined]
        found[f"gradient of {name}"] = local
    runs = [block.runs for block in blocks]
    return found | {"gradient of x": given.grad, "runs of each block": runs, "held": held_too_much}


def _describe_excess(
    counter: LiveTensorCounter, others: Sequence[torch.Tensor], max_bytes: int
) -> str:
    state = torch.get_rng_state().numel()  # torch's checkpoint keeps one state per call

    def count(sizes: list[int]) -> int:
        return sum(size for size in sizes if size != state)

    found = count(
        counter.count_until(
            lambda sizes: count(sizes) <= max_bytes, *others, patience_s=PATIENCE_S / 2
        )
    )
    if found <= max_bytes:
        return ""
    return f"{found:,} bytes of activations are kept after forward, but {max_bytes:,} are enough"


# --- hybrid ---------------------------------------------------------------------------------------


def run_hybrid(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    kinds: Sequence[str],
    state: Weights,
    batches: Sequence[tuple[torch.Tensor, torch.Tensor]],
    per_host: int,
    max_bytes: int,
) -> dict[str, Any]:
    """Call the answer to shard a model and accumulate gradients. max_bytes: the bytes of a shard."""
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor

    model = build_sequential(kinds, state)
    answer(rank, world_size, model, [(x.clone(), y.clone()) for x, y in batches], per_host)
    params = dict(model.named_parameters())
    found: dict[str, Any] = {"sharded": "", "share": "", "root": ""}
    if not isinstance(model, FSDPModule):
        found["root"] = "fully_shard was not called for `model` itself"
    if left := [name for name, p in params.items() if not isinstance(p, DTensor)]:
        found["sharded"] = f"`{left[0]}` is not sharded"
        return found
    locals_of = {name: p.to_local() for name, p in params.items()}  # type: ignore[attr-defined]
    if (held := storage_bytes(locals_of.values())) > max_bytes:
        found["share"] = (
            f"this rank's shards of the weights have {held:,} bytes, but its share is {max_bytes:,}"
        )
    for name, p in params.items():
        grad = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
        found[f"gradient of {name}"] = None if grad is None else grad.clone()
    return found
