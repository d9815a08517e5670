"""19.4 Go on exactly (20 min, ●●●●○, further)

- The job that goes on has other ranks. Which of the things to keep belong to a rank, and which to the job?
- All of it belongs to the job here: what the parts hold, the generator's state, what is left of the epoch's
  order, the losses. So rank 0 can save all of it, and a rank's share of a batch is cut after loading.
- for name, part in parts.items(): part.load_state_dict(saved[name]); generator.set_state(saved["generator"]);
  order, losses = saved["order"], saved["losses"]. Loop: while len(losses) < steps: if not order: order =
  torch.randperm(samples, generator=generator).tolist(); now, order = order[:batch], order[batch:];
  losses.append(train_step(now[rank::world_size])).
"""

from collections.abc import Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks.go_on import Job, Jobs, go_on
from helpers.exercises.nb19_checkpoints.in_ranks.resume import plans_of
from helpers.exercises.nb19_checkpoints.shared import (
    AGAIN,
    EARLIER,
    HALF,
    TEXT,
    at_the_wrong_time,
    evidence,
    half_loaded,
    intruder,
    left_alone,
    lives_of,
    newest_as_text,
    was_made,
    why_from_zero,
)

CLOSE = 1e-6
DRAWN_AGAIN = (
    "the epoch's order: it was drawn again, from a generator that had drawn noise since, which gives another "
    "one. Keep the order itself"
)
LOST = {
    "model": "the model's weights",
    "optimizer": "the optimizer's state",
    "scheduler": "the scheduler's state",
    "generator": "the generator's state",
    "order": "the rest of the epoch's order (another one was drawn)",
    "place": "the place in the epoch's order (it began again at its first sample)",
    "again": DRAWN_AGAIN,
    "again, then put back": DRAWN_AGAIN,
    "noise": "the generator's state of now (that of the epoch's beginning was put back)",
}
TWICE = "Cut the batch so that each of its samples is on one rank: `now[rank::world_size]`."


def case(draw: Draw) -> Case:
    after, before = draw.ranks, draw.whole(1, 3)
    sizes = draw.of([before, after], [before, after], [after, before, after])
    every, batch = draw.whole(2, 4), draw.whole(2, 5)
    samples = batch * draw.whole(2, 4) + draw.of(0, 1, batch - 1)
    event = draw.of(0, 0, 1, 2, 3, 4, 5, 6)
    deaths, start = [], 0
    for _ in sizes[1:]:
        deaths.append([start + every * draw.whole(1, 2) + draw.whole(0, every - 2), 0])
        start = (deaths[-1][0] + 1) // every * every
    if event:  # the last death comes in a save; after three of them, if there are fewer events
        deaths[-1] = [deaths[-1][0] + 2 * every, event]
    steps = deaths[-1][0] + draw.whole(2, 5) + 1
    seed = draw.whole(0, 999)
    planned = [(step + 1) // every * every for step, _ in deaths]
    told = (seed, samples, batch, steps)
    _, batches = course(*told, [0.0] * samples)

    def together(values: list[Any]) -> Finding | None:
        if found := intruder(values[0], ALONE):
            return found
        lives = values[0]["lives"]
        jobs = [life["rows"] for life in lives]
        starts = [*planned[:-1], steps - len(jobs[-1][0])]
        for rank, got in enumerate(values):
            losses = got["losses"]
            if losses is None:
                return Finding(f"rank {rank} returns nothing", "Return the list of losses.")
            if not isinstance(losses, (list, tuple)) or len(losses) != steps:
                have = len(losses) if isinstance(losses, (list, tuple)) else 0
                return Finding(
                    f"rank {rank} returns {plural(have, 'loss')}, not one for each of {steps} steps",
                    EARLIER if have == len(jobs[-1][0]) < steps else "",
                )
        seen = values[0] | {"lives": [*lives[:-1], lives[-1] | {"first": starts[-1]}]}
        if found := evidence(seen, plans_of(deaths)) or began(starts[-1], lives):
            return found
        for job, first in zip(jobs, (0, *starts), strict=True):
            for k, parts in enumerate(zip(*job, strict=False), first):
                rows = sorted(sum(parts, []))
                if len(set(rows)) < len(rows):
                    return Finding(f"in step {k} a sample is trained twice: {rows}", TWICE)
                if set(rows) != set(batches[k]):
                    own = sorted(batches[k])
                    return Finding(
                        f"step {k} trains {rows}; its batch is {own}", lost(values, starts)
                    )
        curve, _ = course(*told, targets_of(values[0]))
        for k, wanted in enumerate(curve):
            loss = values[0]["losses"][k]
            if not same(wanted, loss, CLOSE):
                return Finding(
                    f"the loss of step {k} is {loss}, not {wanted:.8g}", lost(values, starts)
                )
        return None

    def targets_of(got: dict[str, Any]) -> list[float]:
        """Give the target of each row, 0 for rows that nobody has asked for."""
        return [*got["numbers"], *[0.0] * samples][:samples]

    def began(start: int, lives: list[dict[str, Any]]) -> Finding | None:
        if found := at_the_wrong_time(lives[-2], every):
            return found
        died = lives[-2].get("died")
        newest = (died[0] - every, died[0]) if died else planned[-1:]
        if start in newest:
            return None
        what = (
            f"after a death{' in a save' if died else ''} the last job goes on with step {start}; "
            + was_made(newest[0], lives[-2])
        )
        if not start:
            return Finding(what, why_from_zero(*lives[-2:]))
        return Finding(
            what, TEXT if start == newest_as_text(lives[-1], every, newest[0]) else AGAIN
        )

    def lost(values: list[Any], starts: list[int]) -> tuple[str, ...]:
        return tuple(
            "Up to the first checkpoint all is right. From there on it is the course of a training which "
            f"lost {LOST[part]}."
            for part in LOST
            if same(
                course(*told, targets_of(values[0]), starts, part)[0],
                list(values[0]["losses"]),
                CLOSE,
            )
        )

    said = " to ".join(map(str, sizes))
    where = f", killed at event {event} of the saves" if event else ""
    return Case(
        f"{samples} samples in batches of {batch}, a checkpoint every {every} steps, {said} ranks{where}",
        [(Jobs(seed, sizes, deaths, samples, batch, steps, every),)] * after,
        right=AllRanks(lambda got: None, together),
        like={},
        facts={"every": every},
        seconds=20.0,
        shown=f"samples = {samples}, batch = {batch}, steps = {steps}, every = {every}",
    )


ONE_FILE = (
    "Not all ranks go on from the same checkpoint. It belongs to the job, not to a rank: rank 0 saves one "
    "file, and every rank loads it, also one that the job before did not have."
)
ALONE = (
    "All of it belongs to the job, and rank 0 has it: one file of rank 0 is enough. Several writers of one "
    "file tear it, and files of several ranks can be from different steps."
)
EMPTY = (
    "The ranks call `train_step` different numbers of times, and one waits for a rank that has returned. "
    "Each rank calls it in each step, also with an empty share."
)


def uneven(case: Case, run: Run) -> bool:
    """Tell whether a run failed because a peer had gone, in a job whose ranks made more or fewer steps."""
    jobs = [life["rows"] for life in lives_of(run)]
    job: list[Any] = next((ranks for ranks in reversed(jobs) if any(ranks)), [])
    return left_alone(case, run) and len(set(map(len, job))) > 1


def course(
    seed: int,
    samples: int,
    batch: int,
    steps: int,
    targets: Sequence[float],
    resumed: Sequence[int] = (),
    lost: str = "",
) -> tuple[list[float], list[list[int]]]:
    """Train in one process; at the steps in `resumed` a new job takes over all but what is `lost`."""
    job, losses, batches = Job(seed, samples), [], []
    y = torch.tensor(targets, dtype=torch.float64)
    order: list[int] = []
    whole: list[int] = []
    begun = job.generator.get_state()
    for step in range(steps):
        if step in resumed:
            new, old = Job(seed, samples), job.generator.get_state()
            for name, part in new.parts.items():
                if name != lost:
                    part.load_state_dict(job.parts[name].state_dict())
            if lost != "generator":
                new.generator.set_state(begun if lost == "noise" and order else old)
            job = new
            order = [] if lost == "order" else whole if lost == "place" and order else order
            if order and lost in {"again", "again, then put back", "noise"}:
                another = torch.randperm(samples, generator=job.generator).tolist()
                order = another[samples - len(order) :]
            if lost == "again, then put back":
                job.generator.set_state(old)
        if not order:
            begun = job.generator.get_state()
            order = whole = torch.randperm(samples, generator=job.generator).tolist()
        now, order = order[:batch], order[batch:]
        batches.append(now)
        losses.append(job.learn(torch.tensor(now), y[now], lambda total: None))
    return losses, batches


EXERCISE = Exercise(
    case,
    failed=(
        Failed("schedulers have counted", ONE_FILE),
        Failed(".", HALF, died=True, when=half_loaded),
        Failed(".", EMPTY, when=uneven),
    ),
    kind=Kind.SCRIPT,
    driver=go_on,
    sizes=(1, 2, 3),
    count=8,
)
