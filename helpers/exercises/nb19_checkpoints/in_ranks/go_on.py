"""19.4: a training that goes on exactly, on other ranks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
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


class Job:
    """A model, its optimizer and scheduler, and one generator, which are the same on all ranks."""

    def __init__(self, seed: int, samples: int) -> None:
        made = torch.Generator().manual_seed(seed)
        self.x = torch.randn(samples, 4, generator=made, dtype=torch.float64)
        self.y = self.x.sum(1, keepdim=True).sin()
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

    def learn(self, rows: torch.Tensor, add_up: Callable[[torch.Tensor], Any]) -> float:
        """Do a step with these rows and those of the other ranks, over which `add_up` adds up."""
        noise = torch.randn(self.x.shape, generator=self.generator, dtype=torch.float64)
        seen = self.x[rows] + 0.2 * noise[rows]
        loss = (self.model(seen) - self.y[rows]).square().sum()
        self.optimizer.zero_grad()
        loss.backward()
        total = torch.stack([loss.detach(), torch.tensor(float(len(rows)), dtype=torch.float64)])
        add_up(total)
        for p in self.model.parameters():
            add_up(p.grad)
            p.grad /= total[1]
        self.optimizer.step()
        self.scheduler.step()
        return float(total[0] / total[1])


def go_on(
    answer: Source,
    rank: int,
    world_size: int,
    seed: int,
    sizes: list[int],
    deaths: list[list[int]],
    samples: int,
    batch: int,
    steps: int,
    every: int,
) -> dict[str, Any]:
    """Run jobs of these sizes one after the other on one folder.

    Job i is killed after step deaths[i][0] or, if it comes before, at event deaths[i][1] of its saves.
    """
    script = compose(answer, one_job, (seed, deaths, samples, batch, steps, every))
    found = run_attempts(script, sizes)
    rows = [
        [_lines(_rows_of(script.parent, job, r)) for r in range(size)]
        for job, size in enumerate(sizes)
    ]
    found["values"] = [
        value | {"rows": rows} if isinstance(value, dict) else value for value in found["values"]
    ]
    return found


def _rows_of(folder: Path, job: int, rank: int) -> Path:
    """Give the file in which a worker writes down what it trains: it may be killed at any moment."""
    return folder / f"rows of {rank} in {job}"


def _lines(path: Path) -> list[list[int]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def one_job(
    answer: Callable[..., Any],
    seed: int,
    deaths: list[list[int]],
    samples: int,
    batch: int,
    steps: int,
    every: int,
) -> dict[str, Any]:
    """Call the answer in a worker of one of the jobs."""
    meet()
    rank, size = dist.get_rank(), dist.get_world_size()
    done = (deaths[life() - 1][0] + 1) // every * every if life() else 0
    dies, event = deaths[life()] if life() < len(deaths) else (-1, 0)
    job, calls, folder = Job(seed, samples), 0, checkpoints(here())
    disk = Disk(folder, event if rank == 0 else 0)
    if rank == 0:
        leave("found", whole_files(folder))

    def train_step(rows: Any) -> float:
        nonlocal calls
        if not calls:
            _same_everywhere(job.scheduler.last_epoch)
            if rank == 0:
                leave("read", len(disk.read))
        calls += 1
        rows = torch.as_tensor(rows, dtype=torch.int64).flatten()
        with open(_rows_of(here(), life(), rank), "a") as file:
            file.write(json.dumps(rows.tolist()) + "\n")
        loss = job.learn(rows, dist.all_reduce)
        if done + calls == dies + 1 and rank == size - 1:
            die()
        return loss

    disk.done = lambda: done + calls
    disk.watch()
    losses = answer(job.parts, job.generator, train_step, samples, batch, steps, every, str(folder))
    dist.destroy_process_group()
    return {"losses": losses, "writes": len(disk.written)}


def _same_everywhere(count: int) -> None:
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([count]))
    if len(set(map(int, counts))) > 1:
        raise RuntimeError(f"the ranks' schedulers have counted {list(map(int, counts))} steps")
