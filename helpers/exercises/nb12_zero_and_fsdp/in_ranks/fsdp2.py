"""Run answers of 12.4 inside the ranks: build a model, and read its state after fully_shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from helpers.checks.live_tensors import storage_bytes


def build_sequential(kinds: Sequence[str], state: Mapping[str, torch.Tensor]) -> nn.Sequential:
    """Build the model with these layers and these parameters."""
    layers: list[nn.Module] = []
    for i, kind in enumerate(kinds):
        if kind == "Linear":
            outs, ins = state[f"{i}.weight"].shape
            layers.append(nn.Linear(ins, outs, bias=f"{i}.bias" in state))
        elif kind == "LayerNorm":
            layers.append(nn.LayerNorm(state[f"{i}.weight"].shape))
        else:
            layers.append(getattr(nn, kind)())
    model = nn.Sequential(*layers).to(next(iter(state.values())).dtype)
    model.load_state_dict(dict(state))
    return model


class Training(NamedTuple):
    """A model and this rank's samples. max_bytes: the bytes of its shards, which consist of rows."""

    kinds: Sequence[str]
    state: Mapping[str, torch.Tensor]
    x: torch.Tensor
    y: torch.Tensor
    steps: int
    lr: float
    max_bytes: int


def run_fsdp2(
    answer: Callable[..., Any], rank: int, world_size: int, inputs: Training
) -> dict[str, Any] | None:
    """Call the answer to shard and train a model."""
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor

    kinds, state, x, y, steps, lr, max_bytes = inputs
    model = build_sequential(kinds, state)
    returned = answer(rank, world_size, model, x, y, steps, lr)
    if returned is None:
        return None
    found = dict.fromkeys(("kind", "names", "DTensor", "sharded", "root", "share"), "")
    own = [p for p in model.parameters() if isinstance(p, DTensor)]
    if not isinstance(returned, dict):
        return {
            "kind": f"a {type(returned).__name__} came back instead of a dict from name to tensor"
        }
    if set(returned) != set(state):
        found["names"] = f"the returned names are {', '.join(map(str, returned)) or 'none'}"[:200]
    if wrapped := [n for n, v in returned.items() if isinstance(v, DTensor)]:
        found["DTensor"] = f"`{wrapped[0]}` came back as a DTensor, which holds only one shard"
        return found
    if len(own) < len(state):
        found["sharded"] = f"only {len(own)} of {len(state)} parameters of `model` are sharded"
    elif not isinstance(model, FSDPModule):
        found["root"] = "fully_shard was called for the layers, but not for `model` itself"
    elif (held := storage_bytes(p.to_local() for p in own)) > max_bytes:
        found["share"] = f"its shards have {held:,} bytes, but its share is {max_bytes:,}"
    kept = {n: v.detach().clone() for n, v in returned.items() if isinstance(v, torch.Tensor)}
    first = {name: found.pop(name) for name in ("kind", "names", "DTensor")}
    return first | {f"`{n}`": kept.get(n) for n in state} | found
