"""19.4: a training that goes on exactly, on other ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from helpers.checks.script_worker import ask
from helpers.checks.scripts import Source, compose
from helpers.exercises.nb19_checkpoints.in_ranks.disk import Disk
from helpers.exercises.nb19_checkpoints.in_ranks.lives import (
    ask_for_step,
    checkpoints,
    here,
    life,
    meet,
    run_attempts,
)
from helpers.exercises.nb19_checkpoints.in_ranks.resume import plans_of
from helpers.exercises.shared.in_ranks.classifier import grad_of


class Job:
    """A model, its optimizer and scheduler, and one generator, which are the same on all ranks."""

    def __init__(self, seed: int, samples: int) -> None:
        made = torch.Generator().manual_seed(seed)
        self.x = torch.randn(samples, 4, generator=made, dtype=torch.float64)
        model = nn.Linear(4, 1, dtype=torch.float64)
        with torch.no_grad():
            model.weight.copy_(torch.randn(1, 4, generator=made))
            model.bias.zero_()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.8)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.7)
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.parts: dict[str, Any] = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
        }
        self.generator = torch.Generator().manual_seed(seed + 1)

    def learn(
        self, rows: torch.Tensor, targets: torch.Tensor, add_up: Callable[[torch.Tensor], Any]
    ) -> float:
        """Do a step with these rows and those of the other ranks, over which `add_up` adds up."""
        noise = torch.randn(self.x.shape, generator=self.generator, dtype=torch.float64)
        seen = self.x[rows] + 0.2 * noise[rows]
        loss = (self.model(seen) - targets[:, None]).square().sum()
        self.optimizer.zero_grad()
        loss.backward()
        total = torch.stack([loss.detach(), torch.tensor(float(len(rows)), dtype=torch.float64)])
        add_up(total)
        for p in self.model.parameters():
            add_up(grad_of(p))
            grad_of(p).div_(total[1])
        self.optimizer.step()
        self.scheduler.step()
        return float(total[0] / total[1])


class Jobs(NamedTuple):
    """Jobs of these sizes, one after the other on one folder.

    Job i is killed after step deaths[i][0] or, if it comes before, at event deaths[i][1] of its saves.
    """

    seed: int
    sizes: list[int]
    deaths: list[list[int]]
    samples: int
    batch: int
    steps: int
    every: int


def go_on(answer: Source, rank: int, world_size: int, drawn: Jobs) -> dict[str, Any]:
    """Run the jobs."""
    seed, sizes, deaths, *more = drawn
    script = compose(answer, one_job, (seed, deaths, *more))
    return run_attempts(script, sizes, plans_of(deaths), alone=True)


def one_job(
    answer: Callable[..., Any],
    seed: int,
    deaths: list[list[int]],
    samples: int,
    batch: int,
    steps: int,
    every: int,
) -> dict[str, Any]:
    """Call the answer in a worker of one of the jobs. The targets of its rows are not in this process."""
    meet()
    done = (deaths[life() - 1][0] + 1) // every * every if life() else 0
    job, calls, folder = Job(seed, samples), 0, checkpoints(here())
    disk = Disk(folder, done=lambda: done + calls)

    def train_step(rows: Any) -> float:
        nonlocal calls
        if not calls:
            _same_everywhere(job.scheduler.last_epoch)
        rows = torch.as_tensor(rows, dtype=torch.int64).flatten()
        numbers = ask_for_step(done + calls, len(disk.read), rows.tolist())
        loss = job.learn(rows, torch.tensor(numbers, dtype=torch.float64), dist.all_reduce)
        calls += 1
        ask("done", done + calls - 1)
        return loss

    disk.watch()
    losses = answer(job.parts, job.generator, train_step, samples, batch, steps, every, str(folder))
    disk.leave()
    dist.destroy_process_group()
    return {"losses": losses}


def _same_everywhere(count: int) -> None:
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([count]))
    if len(set(map(int, counts))) > 1:
        raise RuntimeError(f"the ranks' schedulers have counted {list(map(int, counts))} steps")
