"""19.1: a training that is killed between two checkpoints, or while it writes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from helpers.checks.script_worker import ask
from helpers.checks.scripts import Source, compose
from helpers.exercises.nb19_checkpoints.in_ranks.disk import Disk
from helpers.exercises.nb19_checkpoints.in_ranks.lives import (
    Plan,
    ask_for_step,
    checkpoints,
    here,
    meet,
    run_attempts,
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

    def backward(self, epoch: int, step: int, rank: int, shift: float) -> float:
        """Make one rank's gradients of one step, in which all targets are shifted; give its loss."""
        order = torch.randperm(64, generator=torch.Generator().manual_seed(self.seed + epoch))
        rows = order[step * 4 * self.world_size :][rank : 4 * self.world_size : self.world_size]
        loss = nn.functional.mse_loss(self.model(self.x[rows]), self.y[rows] + shift)
        self.model.zero_grad()
        loss.backward()
        return float(loss.detach())

    def parameters(self) -> list[nn.Parameter]:
        return list(self.model.parameters())


class Resumed(NamedTuple):
    """A training; deaths: for each attempt the step after which it is killed, or the event of a save."""

    seed: int
    nproc: int
    epochs: int
    steps: int
    every: int
    deaths: Sequence[tuple[int, int]]


def resume(answer: Source, rank: int, world_size: int, drawn: Resumed) -> dict[str, Any]:
    """Run a training in as many attempts as it needs."""
    seed, nproc, epochs, steps, every, deaths = drawn
    script = compose(answer, train, (seed, epochs, steps, every))
    return run_attempts(script, [nproc] * (len(deaths) + 1), plans_of(deaths), alone=True)


def plans_of(deaths: Sequence[Sequence[int]]) -> list[Plan]:
    """Give how attempts are to end that are killed after a step (-1: none) or at an event (0: none)."""
    return [Plan(step=step, event=event) for step, event in deaths]


def train(
    answer: Callable[..., Any], seed: int, epochs: int, steps: int, every: int
) -> dict[str, Any]:
    """Call the answer in a worker, which may be killed after any step, or at any event of its files."""
    meet()
    rank, size = dist.get_rank(), dist.get_world_size()
    training = Training(seed, size)
    torch.manual_seed(seed + rank)
    folder, done = checkpoints(here()), 0
    disk = Disk(folder, done=lambda: done)

    def train_step(epoch: int, step: int) -> float:
        nonlocal done
        number = epoch * steps + step
        (shift,) = ask_for_step(number, len(disk.read))
        mean = torch.tensor(training.backward(epoch, step, rank, shift))
        grads = [p.grad for p in training.parameters() if p.grad is not None]
        for tensor in (mean, *grads):
            dist.all_reduce(tensor)
            tensor /= size
        training.optimizer.step()
        done = number + 1
        ask("done", number)
        return float(mean)

    disk.watch()
    losses = answer(
        training.model, training.optimizer, train_step, epochs, steps, every, str(folder)
    )
    disk.leave()
    dist.destroy_process_group()
    return {"losses": losses}
