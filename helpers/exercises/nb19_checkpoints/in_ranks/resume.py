"""19.1: a training run that is killed between two checkpoints, or while it writes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from helpers.checks.script_worker import ask
from helpers.checks.scripts import Source, compose
from helpers.exercises.shared.in_ranks.attempts import (
    Plan,
    ask_for_step,
    join_attempt,
    run_attempts,
)


class Training:
    """A small model with dropout and momentum, trained on a rank's rows of each step."""

    def __init__(self, seed: int, world_size: int) -> None:
        self.seed, self.world_size = seed, world_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.4), nn.Linear(8, 1))
            self.x = torch.randn(64, 6)
            self.y = self.x[:, :1].sin() + 0.1 * torch.randn(64, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def backward(self, epoch: int, step: int, rank: int, shift: float) -> float:
        """Compute one rank's gradients of one step, with all targets shifted; return its loss."""
        order = torch.randperm(64, generator=torch.Generator().manual_seed(self.seed + epoch))
        rows = order[step * 4 * self.world_size :][rank : 4 * self.world_size : self.world_size]
        loss = nn.functional.mse_loss(self.model(self.x[rows]), self.y[rows] + shift)
        self.model.zero_grad()
        loss.backward()
        return float(loss.detach())

    def parameters(self) -> list[nn.Parameter]:
        return list(self.model.parameters())


def run_training(
    answer: Source,
    rank: int,
    world_size: int,
    sizes: list[int],
    plans: Sequence[Plan],
    *train_args: Any,
) -> dict[str, Any]:
    """Run the training in as many attempts as its kills require."""
    return run_attempts(
        compose(answer, train_in_worker, train_args), sizes, plans, only_rank0_writes=True
    )


def train_in_worker(
    answer: Callable[..., Any], seed: int, epochs: int, steps: int, every: int
) -> dict[str, Any]:
    """Call the answer in a worker, which may be killed after any step or at any event of its files."""
    done = 0
    with join_attempt(lambda: done) as disk:
        rank, size = dist.get_rank(), dist.get_world_size()
        training = Training(seed, size)
        torch.manual_seed(seed + rank)

        def train_step(epoch: int, step: int) -> float:
            nonlocal done
            number = epoch * steps + step
            (shift,) = ask_for_step(number, len(disk.read_files))
            mean = torch.tensor(training.backward(epoch, step, rank, shift))
            grads = [p.grad for p in training.parameters() if p.grad is not None]
            for tensor in (mean, *grads):
                dist.all_reduce(tensor)
                tensor /= size
            training.optimizer.step()
            done = number + 1
            ask("done", number)
            return float(mean)

        disk.start()
        model, optimizer, folder = training.model, training.optimizer, str(disk.folder)
        return {"losses": answer(model, optimizer, train_step, epochs, steps, every, folder)}
