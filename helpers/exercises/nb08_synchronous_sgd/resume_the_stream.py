"""8.6 Stop, and resume with other ranks (25 min, ●●●○○, further)

- Which information does the state need so that a job of a different size can continue? With a different
  number of ranks, the same number of steps covers different samples. Which number has the same meaning for
  any number of ranks?
- Two numbers are enough: the epoch, and how many samples of its order all ranks together have used. You
  don't need the order itself, because you can draw it again from the seed and the epoch.
- epoch, used = (state["epoch"], state["used"]) if state else (0, 0). In each step: order =
  torch.randperm(samples, generator=torch.Generator().manual_seed(seed + epoch)).tolist(); now = order[used :
  used + batch_size * world_size]; shares.append(now[rank::world_size]); used += len(now); if used == samples:
  epoch, used = epoch + 1, 0.
"""

from collections.abc import Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.shared import as_int_list
from helpers.exercises.nb08_synchronous_sgd.in_ranks import run_in_jobs


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
    if draw.of(True, False, False):  # stops exactly at the end of an epoch
        jobs[0] = sizes[0], -(-samples // (batch_size * sizes[0])) * draw.of(1, 1, 2)
    right = samples_by_step(samples, batch_size, seed, jobs)

    def judge_all_ranks(values: list[Any]) -> Finding | str | None:
        place = 0
        for job, (size, steps) in enumerate(jobs):
            for rank in range(n):
                have = len(values[rank]["shares"][job])
                if have != (steps if rank < size else 0):
                    what = f"rank {rank} returns {plural(have, 'list')} for {plural(steps, 'step')}"
                    return Finding(
                        f"job {job + 1}, of {plural(size, 'rank')}: {what}", LISTS_ADVICE
                    )
            for step in range(steps):
                shares = {r: values[r]["shares"][job][step] for r in range(size)}
                if what := find_wrong_step(shares, right[place]):
                    return f"{step_label(job, size, step)} {what}"
                place += 1
        return None

    def judge_rank(got: Any) -> Finding | None:
        if got["state"]:
            return Finding(got["state"], STATE_ADVICE)
        lists = all(
            isinstance(job, list) and None not in map(as_int_list, job) for job in got["shares"]
        )
        if not lists:
            return Finding("the shares are not lists of sample numbers", LISTS_ADVICE)
        return (
            Finding("the state of torch's default generator has changed", GENERATOR_ADVICE)
            if got["reseeded"]
            else None
        )

    said = ", then ".join(f"{plural(steps, 'step')} of {size}" for size, steps in jobs)
    return Case(
        f"{plural(samples, 'sample')}, batch_size {batch_size}, {said}",
        [(samples, batch_size, seed, jobs)] * n,
        right=AllRanks(judge_rank, judge_all_ranks),
        like={"state": "", "shares": [None] * len(jobs), "reseeded": False},
        shown=f"samples = {samples}, batch_size = {batch_size}, seed = {seed}",
    )


STATE_ADVICE = (
    "The state needs only a few integers: seed and epoch are enough to draw the order again."
)
LISTS_ADVICE = (
    "Return one list of sample numbers for each step, even if the list is short or empty."
)
GENERATOR_ADVICE = (
    "Calling `torch.manual_seed` or drawing without `generator=` changes the random numbers of other "
    "code, such as dropout. Create a separate generator: `torch.Generator().manual_seed(...)`."
)


def step_label(job: int, size: int, step: int) -> str:
    return f"job {job + 1}, of {plural(size, 'rank')}, step {step}:"


def find_wrong_step(shares: dict[int, list[int]], wanted: Sequence[int]) -> str:
    """Return the problem with the samples read by the ranks in one step, or ""."""
    read = [sample for share in shares.values() for sample in share]
    if twice := sorted({s for s in read if read.count(s) > 1}):
        ranks = [rank for rank, share in shares.items() if twice[0] in share]
        return f"sample {twice[0]} is read twice, by rank {' and rank '.join(map(str, ranks))}"
    if set(read) != set(wanted):
        return f"the ranks read {sorted(read)}, but the next samples are {sorted(wanted)}"
    sizes = [len(share) for share in shares.values()]
    even = max(sizes) - min(sizes) <= 1
    told = ", ".join(f"rank {rank}: {size}" for rank, size in zip(shares, sizes, strict=True))
    return (
        ""
        if even
        else f"the shares of {len(read)} samples are uneven ({told}): they may differ by at most one"
    )


def samples_by_step(
    samples: int, batch_size: int, seed: int, jobs: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """Return the samples of each step of all jobs."""
    epoch, used, found = 0, 0, []
    for size, steps in jobs:
        for _ in range(steps):
            generator = torch.Generator().manual_seed(seed + epoch)
            order = torch.randperm(samples, generator=generator).tolist()
            found.append(order[used : used + batch_size * size])
            used += len(found[-1])
            if used == samples:
                epoch, used = epoch + 1, 0
    return found


EXERCISE = Exercise(
    case,
    (OnlyCalls(()),),
    failed=(CrashAdvice("not iterable|0-d tensor", LISTS_ADVICE),),
    kind=Kind.MODULE,
    driver=run_in_jobs,
    reported=("state", "reseeded"),
    sizes=(1, 2, 3, 4),
)
