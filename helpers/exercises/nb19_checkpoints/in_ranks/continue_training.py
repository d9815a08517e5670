"""19.4: a training run that resumes exactly on a different number of ranks."""

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
    attempt_number,
    join_attempt,
    run_attempts,
)
from helpers.exercises.shared.in_ranks.classifier import grad_of


class Job:
    """A model, its optimizer and scheduler, and a generator, which are equal on all ranks."""

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

    def train_one_step(
        self, rows: torch.Tensor, targets: torch.Tensor, all_reduce: Callable[[torch.Tensor], Any]
    ) -> float:
        """Train one step on these and the other ranks' rows; `all_reduce` sums over the ranks."""
        noise = torch.randn(self.x.shape, generator=self.generator, dtype=torch.float64)
        seen = self.x[rows] + 0.2 * noise[rows]
        loss = (self.model(seen) - targets[:, None]).square().sum()
        self.optimizer.zero_grad()
        loss.backward()
        total = torch.stack([loss.detach(), torch.tensor(float(len(rows)), dtype=torch.float64)])
        all_reduce(total)
        for p in self.model.parameters():
            all_reduce(grad_of(p))
            grad_of(p).div_(total[1])
        self.optimizer.step()
        self.scheduler.step()
        return float(total[0] / total[1])


def run_jobs(
    answer: Source,
    rank: int,
    world_size: int,
    sizes: list[int],
    plans: Sequence[Plan],
    *job_args: Any,
) -> dict[str, Any]:
    """Run jobs of these sizes one after another, all with the same folder."""
    script = compose(answer, train_in_worker, ([plan[0] for plan in plans], *job_args))
    return run_attempts(script, sizes, plans, only_rank0_writes=True)


def train_in_worker(
    answer: Callable[..., Any],
    kill_steps: list[int],
    seed: int,
    samples: int,
    batch: int,
    steps: int,
    every: int,
) -> dict[str, Any]:
    """Call the answer in a worker of one of the jobs. This process does not know the targets of its rows.

    kill_steps: for each job, the step after which it is killed.
    """
    number, calls = attempt_number(), 0
    done = (kill_steps[number - 1] + 1) // every * every if number else 0
    with join_attempt(lambda: done + calls) as disk:
        job = Job(seed, samples)

        def train_step(rows: Any) -> float:
            nonlocal calls
            if not calls:
                _check_same_count(job.scheduler.last_epoch)
            rows = torch.as_tensor(rows, dtype=torch.int64).flatten()
            numbers = ask_for_step(done + calls, len(disk.read_files), rows.tolist())
            loss = job.train_one_step(
                rows, torch.tensor(numbers, dtype=torch.float64), dist.all_reduce
            )
            calls += 1
            ask("done", done + calls - 1)
            return loss

        disk.start()
        given = job.parts, job.generator, train_step, samples, batch, steps, every
        return {"losses": answer(*given, str(disk.folder))}


class StepsDiffer(RuntimeError):
    """The ranks of a job do not resume from the same checkpoint."""


def _check_same_count(count: int) -> None:
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([count]))
    if len(set(map(int, counts))) > 1:
        raise StepsDiffer(
            "the ranks' schedulers have counted different numbers of steps: "
            f"{list(map(int, counts))}"
        )
