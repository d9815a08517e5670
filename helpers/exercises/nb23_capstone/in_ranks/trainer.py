"""The script of 23.4: train a small language model on a mesh of data x tensor. Five functions are missing.

The check of 23.4 runs `train` under torchrun, and notebook 23 runs it with `launch`. It calls the missing
functions as attributes of `holes`, with a comment at each call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

from helpers.data.play import play

VOCABULARY, HIDDEN, HEADS, MLP, TOKENS = 128, 64, 4, 128, 32
END, NO_TARGET = 0, -100
PLAN: dict[str, Any] = {name: ColwiseParallel() for name in ("query", "key", "value", "gate", "up")}
PLAN |= {name: RowwiseParallel() for name in ("mix", "down")}


# --- data -----------------------------------------------------------------------------------------


def packed_windows(seed: int) -> torch.Tensor:
    """Pack the speeches of a play, each with an END, and split them into windows of TOKENS + 1 bytes."""
    stream = [token for speech in play() for token in (*speech.encode("ascii"), END)]
    windows = torch.tensor(stream).unfold(0, TOKENS + 1, TOKENS)
    return windows[torch.randperm(len(windows), generator=torch.Generator().manual_seed(seed))]


def inputs_and_targets(windows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each token, and the next token. After END, there is nothing to predict, so it is NO_TARGET."""
    inputs, targets = windows[:, :-1], windows[:, 1:]
    return inputs, targets.masked_fill(inputs == END, NO_TARGET)


def count_targets(windows: torch.Tensor) -> int:
    """Return the number of tokens in these windows that are followed by a token to predict."""
    return int((inputs_and_targets(windows)[1] != NO_TARGET).sum())


def summed_loss(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    """Return the sum of the losses of all targets in these windows, a tensor with a gradient."""
    inputs, targets = inputs_and_targets(windows)
    scores = model(inputs).flatten(0, 1)
    return F.cross_entropy(scores, targets.flatten(), ignore_index=NO_TARGET, reduction="sum")


# --- model ----------------------------------------------------------------------------------------


class Block(nn.Module):
    """Attention and a gated MLP, each after a norm and with a residual: (batch, tokens, HIDDEN)."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        linears = [nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4)]
        self.query, self.key, self.value, self.mix = linears
        self.gate, self.up = (nn.Linear(HIDDEN, MLP, bias=False) for _ in range(2))
        self.down = nn.Linear(MLP, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.attention_norm(x)
        # under tensor parallelism, these are the heads of this rank
        parts = (self.query(h), self.key(h), self.value(h))
        q, k, v = (y.unflatten(-1, (-1, HIDDEN // HEADS)).transpose(1, 2) for y in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(mixed.transpose(1, 2).flatten(2))
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """Maps tokens (batch, tokens) to scores for each next token (batch, tokens, VOCABULARY)."""

    def __init__(self, layers: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.table, self.positions = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(TOKENS, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.RMSNorm(HIDDEN)
        for table in (self.table, self.positions):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.table.weight)  # tied: the table is used twice


# --- speed ----------------------------------------------------------------------------------------


def flops_per_token(model: nn.Module, layers: int) -> int:
    """Return the operations per token of forward and backward; recomputation does not count."""
    return 6 * sum(p.numel() for p in model.parameters()) + 12 * layers * HIDDEN * TOKENS


def measured_peak() -> float:
    """Return the operations per second of all ranks together, while all of them multiply matrices."""
    a, done, size = torch.ones(256, 256), 0, 256
    dist.barrier()
    start = time.perf_counter()
    while time.perf_counter() - start < 0.2:
        a @ a
        done += 1
    rate = torch.tensor(2 * size**3 * done / (time.perf_counter() - start))
    dist.all_reduce(rate)
    return rate.item()


# --- training -------------------------------------------------------------------------------------


def load(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> int:
    """Load the newest complete checkpoint, and return its number of steps, or 0 if there is none."""
    whole = [int(path.parent.name) for path in folder.glob("*/.metadata")]
    if whole:
        states: Any = dict(
            zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True)
        )
        dcp.load(states, checkpoint_id=folder / str(max(whole)))  # type: ignore[attr-defined]
        weights, moments = states["model"], states["optimizer"]
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    return max(whole, default=0)


def train(
    holes: Any,
    sizes: tuple[int, int],
    folder: Path,
    *,
    steps: int,
    save_every: int = 8,
    samples: int = 16,
    microbatches: int = 2,
    layers: int = 2,
    seed: int = 0,
    lr: float = 3e-3,
    limit: float = 1.0,
    on_step: Callable[[int, float], None] = lambda step, loss: None,
) -> tuple[nn.Module, dict[str, float]]:
    """Train up to step `steps`, starting from the newest checkpoint; return the model and the speed."""
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("data", "tensor"))
    windows, model = packed_windows(seed), Decoder(layers, seed)
    flops = flops_per_token(model, layers)
    holes.shard(model, mesh, PLAN)  # hole 2
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    group, saving, speed = dist.new_group(backend="gloo"), None, {}
    done, peak = load(model, optimizer, folder), measured_peak()
    for step in range(done, steps):
        start = time.perf_counter()
        batch = windows[torch.arange(step * samples, (step + 1) * samples) % len(windows)]
        parts = holes.share(batch, mesh, microbatches)  # hole 1
        loss = holes.backward(model, parts, mesh)  # hole 3
        norm = holes.clip(model, limit)  # hole 4
        optimizer.step()
        optimizer.zero_grad()
        rate = samples * TOKENS / (time.perf_counter() - start)
        speed = {"tokens/s": rate, "MFU": rate * flops / peak}
        on_step(step, float(loss))
        if dist.get_rank() == 0 and (step + 1) % save_every == 0:
            print(
                f"step {step + 1}: loss {loss:.3f}, norm {norm:.2f}, {rate:,.0f} tokens/s, "
                f"MFU {speed['MFU']:.1%}",
                flush=True,
            )
        if (step + 1) % save_every == 0:
            saving = holes.save(model, optimizer, step + 1, folder, group, saving)  # hole 5
    if saving is not None:
        saving.result()
    return model, speed
