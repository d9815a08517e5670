"""7.5 Shard a stream (12 min, ●●●○○, further)

- A stream has no length and no index, so every reader reads all of it and keeps its share. How many readers
  are there in all?
- There are world_size times num_workers readers. `torch.utils.data.get_worker_info()` returns `id` and
  `num_workers` within a worker process, and None outside of one.
- info = get_worker_info(); worker, workers = (info.id, info.num_workers) if info else (0, 1); shard = rank *
  workers + worker; return itertools.islice(stream, shard, None, world_size * workers).
"""

from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.in_ranks import run_all_readers
from helpers.exercises.nb07_data_partitioning.shared import as_int_list, find_uneven_shares


def case(draw: Draw) -> Case:
    n, workers = draw.ranks, draw.of(0, 1, 2, 2, 3)
    readers = max(1, workers)
    length = draw.whole(*draw.of((0, 0), (1, n * readers), (12, 40), (13, 40)))
    what = draw.of("all different", "each twice", "descending")
    samples = [draw.rng.randrange(100) + 12 * n * readers * i for i in range(length)]
    samples = [samples[i - i % 2] for i in range(length)] if what == "each twice" else samples
    samples = samples[::-1] if what == "descending" else samples

    return Case(
        f"{plural(workers, 'worker')} each, {plural(length, 'sample')}, {what}",
        [(samples, workers, workers > 0 and draw.of(True, *[False] * 5))] * n,
        right=AllRanks(
            lambda got: judge_rank(got, readers),
            lambda values: judge_all_ranks(values, samples, workers),
        ),
    )


def judge_rank(shares: Any, readers: int) -> Finding | None:
    """Describe the problem with the shares of one rank's readers, regardless of other ranks' shares."""
    if not isinstance(shares, list) or len(shares) != readers or None in map(as_int_list, shares):
        return Finding("the results aren't lists of samples from the stream")
    return None


def judge_all_ranks(values: list[Any], samples: list[int], workers: int) -> Finding | None:
    """Describe the problem with the shares of all readers of all ranks."""
    shares = {
        f"worker {w} of rank {r}" if workers else f"rank {r}": as_int_list(share) or []
        for r, mine in enumerate(values)
        for w, share in enumerate(mine)
    }
    problem = find_uneven_shares(shares, samples)
    return Finding(problem) if problem else None


EXERCISE = Exercise(
    case, (OnlyCalls(()),), kind=Kind.MODULE, driver=run_all_readers, sizes=(1, 2, 3, 4)
)
