"""19.1: a training that is killed between two checkpoints, or while it writes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from helpers.checks.script_worker import die
from helpers.checks.scripts import Source, compose
from helpers.exercises.nb19_checkpoints.in_ranks.disk import Disk
from helpers.exercises.nb19_checkpoints.in_ranks.lives import (
    checkpoints,
    here,
    leave,
    life,
    meet,
    run_attempts,
    whole_files,
)


class Training:
    """A small model with dropout and momentum, on the rows that a rank has in a step."""

    def __init__(self, seed: int, world_size: int) -> None:
        self.seed, self.world_size = seed, world_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.4), nn.Linear(8, 1))
            self.x = torch.randn(64, 6)
            self.y = self.x[:, :1].sin() + 0.1 * torch.randn(64, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def backward(self, epoch: int, step: int, rank: int) -> float:
        """Make one rank's gradients of one step, and give its loss."""
        order = torch.randperm(64, generator=torch.Generator().manual_seed(self.seed + epoch))
        rows = order[step * 4 * self.world_size :][rank : 4 * self.world_size : self.world_size]
        loss = nn.functional.mse_loss(self.model(self.x[rows]), self.y[rows])
        self.model.zero_grad()
        loss.backward()
        return float(loss.detach())

    def parameters(self) -> list[nn.Parameter]:
        return list(self.model.parameters())


def resume(
    answer: Source,
    rank: int,
    world_size: int,
    seed: int,
    nproc: int,
    epochs: int,
    steps: int,
    every: int,
    deaths: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    """Run a training. deaths: for each life the step in which it is killed, or the event of its saves."""
    given = (seed, epochs, steps, every, list(map(list, deaths)))
    script = compose(answer, train, given)
    return run_attempts(script, [nproc] * (len(deaths) + 1))


def train(
    answer: Callable[..., Any],
    seed: int,
    epochs: int,
    steps: int,
    every: int,
    deaths: list[list[int]],
) -> dict[str, Any]:
    """Call the answer in a worker; be killed where this life has to."""
    meet()
    rank, size = dist.get_rank(), dist.get_world_size()
    dies, event = deaths[life()] if life() < len(deaths) else (-1, 0)
    training = Training(seed, size)
    torch.manual_seed(seed + rank)
    folder = checkpoints(here())
    disk = Disk(folder, event if rank == 0 else 0)
    calls: list[tuple[int, int]] = []
    if rank == 0:
        leave("found", whole_files(folder))

    def train_step(epoch: int, step: int) -> float:
        if not calls and rank == 0:
            leave("first", [epoch, step])
            leave("read", len(disk.read))
        calls.append((epoch, step))
        mean = torch.tensor(training.backward(epoch, step, rank))
        grads = [p.grad for p in training.parameters() if p.grad is not None]
        for tensor in (mean, *grads):
            dist.all_reduce(tensor)
            tensor /= size
        training.optimizer.step()
        if not event and epoch * steps + step == dies and rank == size - 1:
            die()
        return float(mean)

    disk.done = lambda: calls[-1][0] * steps + calls[-1][1] + 1 if calls else 0
    disk.watch()
    losses = answer(
        training.model, training.optimizer, train_step, epochs, steps, every, str(folder)
    )
    dist.destroy_process_group()
    return {"losses": losses, "writes": len(disk.written)}
