"""8.7 Stop, and go on with other ranks (15 min, ●●●○○, further)

- What must the state say so that a job of another size can go on? A number of steps means other samples
  there. What is it that no number of ranks changes?
- How many samples of the epoch's order are used up, by all ranks together: with the epoch's number that is
  all. The order itself need not be kept: seed and epoch give it again.
- epoch, used = (state["epoch"], state["used"]) if state else (0, 0). In each step: order =
  torch.randperm(samples, generator=torch.Generator().manual_seed(seed + epoch)).tolist(); now = order[used :
  used + batch_size * world_size]; shares.append(now[rank::world_size]); used += len(now); if used == samples:
  epoch, used = epoch + 1, 0.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.shared import numbers
from helpers.exercises.nb08_synchronous_sgd.in_ranks import read_in_jobs
from helpers.views.plain import plural

Jobs = Sequence[tuple[int, int]]
"""Of each job: how many ranks it has, and for how many steps it reads."""

WAYS = {
    "no state": "After the restart all begins anew, in epoch 0: does the state that is given count?",
    "no position": "After the restart the epoch begins again: the state must say how far it had come, too.",
    "no epoch": "After the restart the place is kept, but not the epoch: this is the order of epoch 0.",
    "steps": "The place is kept as a number of steps, and steps of another world size are of another size.",
    "own samples": "The place is kept as the samples of one rank: all ranks together have used more.",
    "again": "The last step before the stop is read again: the state must say what comes after it.",
    "beyond": "A step is left out at the restart: the state already counts one that nobody has read.",
    "one order": "Every epoch has the same order: the generator is seeded with `seed + epoch`.",
    "seed 0": "The order does not depend on `seed`: the generator is seeded with `seed + epoch`.",
    "in order": "The samples are not shuffled: `torch.randperm` gives an epoch's order.",
    "full only": "The last step of an epoch is missing: it may be short.",
    "filled up": "The last step of an epoch is filled up with samples of the next one: let it be short.",
    "from the start": "The last step of an epoch is filled up from the epoch's start: let it be short.",
    "one rank's": "A step takes `batch_size` samples for each rank, not for all of them together.",
}


def case(draw: Draw) -> Case:
    n, batch_size, seed = draw.ranks, draw.whole(1, 4), draw.of(0, 1, 1) * draw.whole(1, 999)
    small = draw.whole(1, n)
    sizes = draw.of((n, n), (n, small), (small, n), (n, small, n), (small, n, small))
    per_epoch = batch_size * n
    kind = draw.of("uneven", "uneven", "uneven", "even", "few samples")
    samples = {
        "even": per_epoch * draw.whole(2, 4),
        "uneven": per_epoch * draw.whole(2, 4) + draw.whole(1, max(1, per_epoch - 1)),
        "few samples": draw.whole(1, per_epoch),
    }[kind]
    jobs = [(size, draw.whole(1, 2 + samples // (size * batch_size))) for size in sizes]
    if draw.of(True, False, False):  # stops where an epoch ends
        jobs[0] = sizes[0], -(-samples // (batch_size * sizes[0])) * draw.of(1, 1, 2)
    right = list(steps_of(samples, batch_size, seed, jobs))

    def together(values: list[Any]) -> Finding | None:
        place = 0
        for job, (size, steps) in enumerate(jobs):
            for rank in range(n):
                have = len(values[rank]["shares"][job])
                if have != (steps if rank < size else 0):
                    what = f"rank {rank} gives {plural(have, 'list')} for {plural(steps, 'step')}"
                    return Finding(f"job {job + 1}, of {plural(size, 'rank')}: {what}", LISTS)
            for step in range(steps):
                shares = {r: values[r]["shares"][job][step] for r in range(size)}
                if what := wrong_step(shares, right[place]):
                    return Finding(f"{named(job, size, step)} {what}", explained(values))
                place += 1
        return None

    def own(got: Any) -> Finding | None:
        if got["state"]:
            return Finding(got["state"], STATE)
        lists = all(
            isinstance(job, list) and None not in map(numbers, job) for job in got["shares"]
        )
        if not lists:
            return Finding("what it reads are not lists of samples", LISTS)
        return Finding("torch's own generator is not as it was", OWN) if got["reseeded"] else None

    def explained(values: list[Any]) -> tuple[str, ...]:
        seen = [
            sorted(s for r in range(size) for s in values[r]["shares"][job][step])
            for job, (size, steps) in enumerate(jobs)
            for step in range(steps)
        ]
        ways = [
            way
            for way in WAYS
            if [*map(sorted, steps_of(samples, batch_size, seed, jobs, way))] == seen
        ]
        same_samples = [*map(set, seen)] == [*map(set, right)]
        return tuple(WAYS[way] for way in ways) or ((SHARES,) if same_samples else ())

    said = ", then ".join(f"{plural(steps, 'step')} of {size}" for size, steps in jobs)
    return Case(
        f"{plural(samples, 'sample')}, batch_size {batch_size}, {said}",
        [(samples, batch_size, seed, jobs)] * n,
        right=AllRanks(own, together),
        like={"state": "", "shares": [None] * len(jobs), "reseeded": False},
        shown=f"samples = {samples}, batch_size = {batch_size}, seed = {seed}",
    )


STATE = "A dict with a few whole numbers is enough; seed and epoch give the epoch's order again."
LISTS = "One list of samples for each step is wanted, also where it is short or empty."
OWN = (
    "`torch.manual_seed`, and a draw without `generator=`, change what all others draw later: dropout, say. "
    "Make a generator: `torch.Generator().manual_seed(...)`."
)
SHARES = (
    "Each sample of a step goes to one rank, evenly: `now[rank::world_size]` is a rank's share."
)


def named(job: int, size: int, step: int) -> str:
    return f"job {job + 1}, of {plural(size, 'rank')}, step {step}:"


def wrong_step(shares: dict[int, list[int]], wanted: Sequence[int]) -> str:
    """Say what is wrong with what the ranks read in one step; "" if nothing is."""
    read = [sample for share in shares.values() for sample in share]
    if twice := sorted({s for s in read if read.count(s) > 1}):
        ranks = [rank for rank, share in shares.items() if twice[0] in share]
        return f"sample {twice[0]} is read twice, by rank {' and rank '.join(map(str, ranks))}"
    if set(read) != set(wanted):
        return f"the ranks read {sorted(read)}, where {sorted(wanted)} come next"
    sizes = [len(share) for share in shares.values()]
    even = max(sizes) - min(sizes) <= 1
    told = ", ".join(f"rank {rank} {size}" for rank, size in zip(shares, sizes, strict=True))
    return "" if even else f"of {len(read)} samples {told}: an even deal differs by one at most"


def steps_of(
    samples: int, batch_size: int, seed: int, jobs: Jobs, way: str = ""
) -> Iterator[list[int]]:
    """Give the samples of each step of all jobs; or what they are for who goes one of the wrong ways."""
    epoch = used = 0
    for number, (size, steps) in enumerate(jobs):
        if number:
            before, its_steps = jobs[number - 1]
            length = batch_size * (1 if way == "one rank's" else size)
            last = batch_size * before
            epoch, used = {
                "no state": (0, 0),
                "no position": (epoch, 0),
                "no epoch": (0, used),
                "steps": (epoch, -(-used // last) * length),
                "own samples": (epoch, used // before),
                "again": (epoch, max(0, used - last)),
                "beyond": (epoch, used + last),
            }.get(way, (epoch, used))
        for _ in range(steps):
            length = batch_size * (1 if way == "one rank's" else size)
            if way == "full only" and used + length > samples and used:
                epoch, used = epoch + 1, 0
            order = order_of(samples, seed, epoch, way)
            now = order[used : used + length]
            if way == "filled up":
                now = (order + order_of(samples, seed, epoch + 1, way))[used : used + length]
                epoch, used = divmod(epoch * samples + used + length, samples)
            else:
                used += len(now)
                if way == "from the start":
                    now = now + order[: length - len(now)]
                if used >= samples:
                    epoch, used = epoch + 1, 0
            yield now


def order_of(samples: int, seed: int, epoch: int, way: str) -> list[int]:
    """Give the order of an epoch, or what stands in its place."""
    if way == "in order":
        return list(range(samples))
    number = {"one order": seed, "seed 0": epoch}.get(way, seed + epoch)
    return torch.randperm(samples, generator=torch.Generator().manual_seed(number)).tolist()


EXERCISE = Exercise(
    case,
    (OnlyCalls(()),),
    failed=(Failed("not iterable|0-d tensor", LISTS),),
    kind=Kind.MODULE,
    programme=read_in_jobs,
    reported=("state", "reseeded"),
    sizes=(1, 2, 3, 4),
)
