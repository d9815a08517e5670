"""19.4 Resume exactly (20 min, ●●●●○, further)

- The new job has a different number of ranks. Which parts of the state belong to a rank, and which to the
  job?
- Here everything belongs to the job: the states of the parts, the generator's state, the rest of the epoch's
  order, and the losses. So rank 0 can save all of it, and after loading, each rank takes its own share of a
  batch.
- for name, part in parts.items(): part.load_state_dict(saved[name]); generator.set_state(saved["generator"]);
  order, losses = saved["order"], saved["losses"]. Loop: while len(losses) < steps: if not order: order =
  torch.randperm(samples, generator=generator).tolist(); now, order = order[:batch], order[batch:];
  losses.append(train_step(now[rank::world_size])).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks.continue_training import Job, run_jobs
from helpers.exercises.nb19_checkpoints.shared import (
    attempts_of,
    find_intruder,
    find_missing_kill,
    judge_loss_count,
    judge_resume_step,
    observe,
)
from helpers.exercises.shared.in_ranks.attempts import Plan
from helpers.ranks.failures import RankFailed, is_consequence

TOLERANCE = 1e-6
LOSABLE_PARTS = (
    "model",
    "optimizer",
    "scheduler",
    "generator",
    "order",
    "place",
    "again",
    "again, then put back",
    "noise",
)
"""Parts that a resumed training run may have lost. `train_in_one_process` simulates the loss of a part."""


def case(draw: Draw) -> Case:
    after, before = draw.ranks, draw.whole(1, 3)
    sizes = draw.of([before, after], [before, after], [after, before, after])
    every, batch = draw.whole(2, 4), draw.whole(2, 5)
    samples = batch * draw.whole(2, 4) + draw.of(0, 1, batch - 1)
    event = draw.of(0, 0, 1, 2, 3, 4, 5, 6)
    deaths, start = [], 0
    for _ in sizes[1:]:
        deaths.append(Plan(start + every * draw.whole(1, 2) + draw.whole(0, every - 2)))
        start = (deaths[-1].step + 1) // every * every
    if event:  # the last kill comes in a save, or after three saves if there are fewer events
        deaths[-1] = Plan(deaths[-1].step + 2 * every, event)
    steps = deaths[-1].step + draw.whole(2, 5) + 1
    seed = draw.whole(0, 999)
    planned = [(plan.step + 1) // every * every for plan in deaths]
    told = (seed, samples, batch, steps)
    _, batches = train_in_one_process(*told, [0.0] * samples)

    def judge_all_ranks(values: list[Any]) -> Finding | None:
        if found := find_intruder(values[0]):
            return found
        attempts = values[0]["attempts"]
        jobs = [one["rows"] for one in attempts]
        starts = [*planned[:-1], steps - len(jobs[-1][0])]
        for rank, got in enumerate(values):
            if found := judge_loss_count(got["losses"], steps, starts[-1:], f"rank {rank}"):
                return found
        resumed = {**attempts[-1], "first": starts[-1]}
        if found := find_missing_kill(values[0] | {"attempts": [*attempts[:-1], resumed]}, deaths):
            return found
        died = attempts[-2].get("died")
        newest = (died[0] - every, died[0]) if died else planned[-1:]
        what = f"after a death{' in a save' if died else ''}, the last job resumes at step {starts[-1]}"
        if found := judge_resume_step(what, attempts[-2], resumed, newest, every, starts[-1]):
            return found
        for job, first, size in zip(jobs, (0, *starts), sizes, strict=True):
            for k, parts in enumerate(zip(*job, strict=False), first):
                rows, own = sorted(sum(parts, [])), sorted(batches[k])
                if rows == own:
                    continue
                if len(set(rows)) < len(rows):
                    what = f"in step {k}, a sample is trained twice: {rows}"
                    return Finding(what, seen=("a sample is trained twice",))
                seen = find_lost_parts(values, starts) or find_wrong_shares(rows, own, size)
                return Finding(f"step {k} trains samples {rows}, but its batch is {own}", seen=seen)
        curve, _ = train_in_one_process(*told, targets_of(values[0]))
        for k, wanted in enumerate(curve):
            loss = values[0]["losses"][k]
            if not same(wanted, loss, TOLERANCE):
                return Finding(
                    f"the loss of step {k} is {loss}, not {wanted:.8g}",
                    seen=find_lost_parts(values, starts),
                )
        return None

    def targets_of(got: dict[str, Any]) -> list[float]:
        """Return the target of each row, or 0 for rows not requested by any rank."""
        return [*got["numbers"], *[0.0] * samples][:samples]

    def find_wrong_shares(rows: list[int], own: list[int], size: int) -> tuple[str, ...]:
        """Return the problem with the ranks' shares of a batch."""
        if set(rows) < set(own) and len(own) - len(rows) == len(own) % size:
            return ("the remainder of a batch is left out",)
        if len(rows) == batch > len(own):
            return ("the last batch of an epoch is left out",)
        return ("more samples than a batch",) if set(rows) > set(own) else ()

    def find_lost_parts(values: list[Any], starts: list[int]) -> tuple[str, ...]:
        return tuple(
            f"lost {part.partition(',')[0]}"
            for part in LOSABLE_PARTS
            if same(
                train_in_one_process(*told, targets_of(values[0]), starts, part)[0],
                list(values[0]["losses"]),
                TOLERANCE,
            )
        )

    said = " to ".join(map(str, sizes))
    where = f", killed at event {event} of the saves" if event else ""
    return Case(
        f"{samples} samples in batches of {batch}, a checkpoint every {every} steps, {said} ranks{where}",
        [(sizes, deaths, seed, samples, batch, steps, every)] * after,
        right=AllRanks(lambda got: None, judge_all_ranks),
        like={},
        facts={"every": every},
        seconds=20.0,
        shown=f"samples = {samples}, batch = {batch}, steps = {steps}, every = {every}",
    )


def observe_failure(case: Case, run: Run) -> Iterator[str]:
    """Yield the observations in a failed run, including ranks with different numbers of steps."""
    failure = run.failure
    if isinstance(failure, RankFailed) and is_consequence(failure.error):
        jobs = [one["rows"] for one in attempts_of(run)]
        job: list[Any] = next((ranks for ranks in reversed(jobs) if any(ranks)), [])
        if len(set(map(len, job))) > 1:
            yield "unequal numbers of steps"
    yield from observe(case, run)


def train_in_one_process(
    seed: int,
    samples: int,
    batch: int,
    steps: int,
    targets: Sequence[float],
    resume_steps: Sequence[int] = (),
    lost_part: str = "",
) -> tuple[list[float], list[list[int]]]:
    """Train in one process.

    At the steps in `resume_steps`, a new job takes over all of the state except `lost_part`.
    """
    job, losses, batches = Job(seed, samples), [], []
    y = torch.tensor(targets, dtype=torch.float64)
    order: list[int] = []
    whole: list[int] = []
    begun = job.generator.get_state()
    for step in range(steps):
        if step in resume_steps:
            new, old = Job(seed, samples), job.generator.get_state()
            for name, part in new.parts.items():
                if name != lost_part:
                    part.load_state_dict(job.parts[name].state_dict())
            if lost_part != "generator":
                new.generator.set_state(begun if lost_part == "noise" and order else old)
            job = new
            order = (
                [] if lost_part == "order" else whole if lost_part == "place" and order else order
            )
            if order and lost_part in {"again", "again, then put back", "noise"}:
                another = torch.randperm(samples, generator=job.generator).tolist()
                order = another[samples - len(order) :]
            if lost_part == "again, then put back":
                job.generator.set_state(old)
        if not order:
            begun = job.generator.get_state()
            order = whole = torch.randperm(samples, generator=job.generator).tolist()
        now, order = order[:batch], order[batch:]
        batches.append(now)
        losses.append(job.train_one_step(torch.tensor(now), y[now], lambda total: None))
    return losses, batches


EXERCISE = Exercise(
    case,
    kind=Kind.SCRIPT,
    driver=run_jobs,
    sizes=(1, 2, 3),
    count=8,
    observe=observe_failure,
)
