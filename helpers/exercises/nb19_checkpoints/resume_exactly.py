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
from helpers.exercises.nb19_checkpoints.in_ranks import Job, go_on
from helpers.views.plain import plural

CLOSE = 1e-6
LOST = {
    "model": "the model's weights",
    "optimizer": "the optimizer's state",
    "scheduler": "the scheduler's state",
    "generator": "the generator's state",
    "order": "the rest of the epoch's order (another one was drawn)",
    "place": "the place in the epoch's order (it began again at its first sample)",
}
TWICE = "Cut the batch so that each of its samples is on one rank: `now[rank::world_size]`."
AGAIN = "Save after every {every} steps in all, and go on with the next one."


def case(draw: Draw) -> Case:
    after, before = draw.ranks, draw.whole(1, 3)
    sizes = draw.of([before, after], [before, after], [after, before, after])
    every, batch = draw.whole(2, 4), draw.whole(2, 5)
    samples = batch * draw.whole(2, 4) + draw.of(0, 1, batch - 1)
    dies, began = [], 0
    for _ in sizes[1:]:
        dies.append(began + every * draw.whole(1, 2) + draw.whole(0, every - 2))
        began = (dies[-1] + 1) // every * every
    steps = dies[-1] + draw.whole(2, 5) + 1
    seed = draw.whole(0, 999)
    resumed = [(d + 1) // every * every for d in dies]
    told = (seed, samples, batch, steps)
    curve, batches = course(*told)

    def together(values: list[Any]) -> Finding | None:
        for rank, got in enumerate(values):
            losses = got["losses"]
            if losses is None:
                return Finding(f"rank {rank} returns nothing", "Return the list of losses.")
            if not isinstance(losses, (list, tuple)) or len(losses) != steps:
                have = len(losses) if isinstance(losses, (list, tuple)) else 0
                return Finding(
                    f"rank {rank} returns {plural(have, 'loss')}, not one for each of {steps} steps",
                    EARLIER if have == steps - resumed[-1] else "",
                )
        jobs = values[0]["rows"]
        did = len(jobs[-1][0])
        if did != steps - resumed[-1]:
            what = (
                f"the last job trains {plural(did, 'step')}; from the checkpoint of step {resumed[-1]} on "
                f"there are {steps - resumed[-1]}"
            )
            return Finding(what, LOOK if did == steps else AGAIN.format(every=every))
        for job, first in zip(jobs, (0, *resumed), strict=True):
            for k, parts in enumerate(zip(*job, strict=False), first):
                rows = sorted(sum(parts, []))
                if len(set(rows)) < len(rows):
                    return Finding(f"in step {k} a sample is trained twice: {rows}", TWICE)
                if set(rows) != set(batches[k]):
                    own = sorted(batches[k])
                    return Finding(f"step {k} trains {rows}; its batch is {own}", lost(values))
        for k, wanted in enumerate(curve):
            loss = values[0]["losses"][k]
            if not same(wanted, loss, CLOSE):
                return Finding(f"the loss of step {k} is {loss}, not {wanted:.8g}", lost(values))
        return None

    def lost(values: list[Any]) -> tuple[str, ...]:
        return tuple(
            "Up to the first checkpoint all is right. From there on it is the course of a training which "
            f"lost {LOST[part]}."
            for part in LOST
            if same(course(*told, resumed, part)[0], list(values[0]["losses"]), CLOSE)
        )

    said = " to ".join(map(str, sizes))
    return Case(
        f"{samples} samples in batches of {batch}, a checkpoint every {every} steps, {said} ranks",
        [(seed, sizes, dies, samples, batch, steps, every)] * after,
        right=AllRanks(lambda got: None, together),
        like={"losses": None, "rows": None},
        seconds=20.0,
        shown=f"samples = {samples}, batch = {batch}, steps = {steps}, every = {every}",
    )


ONE_FILE = (
    "Not all ranks go on from the same checkpoint. It belongs to the job, not to a rank: rank 0 saves one "
    "file, and every rank loads it, also one that the job before did not have."
)
EARLIER = (
    "The losses of before the death are missing: keep the list in the checkpoint and go on with it."
)
LOOK = (
    "It began again at the very beginning: is the checkpoint looked for before the loop, and in the "
    "folder that was given?"
)


def course(
    seed: int,
    samples: int,
    batch: int,
    steps: int,
    resumed: Sequence[int] = (),
    lost: str = "",
) -> tuple[list[float], list[list[int]]]:
    """Train in one process; at the steps in `resumed` a new job takes over all but what is `lost`."""
    job, losses, batches = Job(seed, samples), [], []
    order: list[int] = []
    whole: list[int] = []
    for step in range(steps):
        if step in resumed:
            new = Job(seed, samples)
            for name, part in new.parts.items():
                if name != lost:
                    part.load_state_dict(job.parts[name].state_dict())
            if lost != "generator":
                new.generator.set_state(job.generator.get_state())
            job = new
            order = [] if lost == "order" else whole if lost == "place" and order else order
        if not order:
            order = whole = torch.randperm(samples, generator=job.generator).tolist()
        now, order = order[:batch], order[batch:]
        batches.append(now)
        losses.append(job.learn(torch.tensor(now), lambda total: None))
    return losses, batches


EXERCISE = Exercise(
    case,
    failed=(Failed("schedulers have counted", ONE_FILE),),
    kind=Kind.SCRIPT,
    programme=go_on,
    sizes=(1, 2, 3),
    count=8,
)
