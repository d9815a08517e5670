"""7.2 DistributedSampler by hand (15 min, ●●●○○)

- You need three steps: create the order of all indices, make its length a multiple of num_replicas, and take
  every num_replicas-th index. Begin with shuffle=False and drop_last=False.
- To shuffle, use `torch.randperm` with a generator seeded with seed + epoch. To pad, repeat the order from
  its start until the length is a multiple of num_replicas. For drop_last, drop the tail instead.
- per_rank = length // num_replicas if drop_last else -(-length // num_replicas); total = per_rank *
  num_replicas; repeat the order often enough, cut it to total, return order[rank:total:num_replicas].
"""

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.in_ranks import run_without_torch_sampler
from helpers.exercises.nb07_data_partitioning.shared import torch_indices


def case(draw: Draw) -> Case:
    p, kind = draw.of(1, 2, 3, 4, 5, 6, 7, 8), draw.of("few", "even", "uneven", "uneven")
    length = p * draw.whole(2, 4)  # with one sample per rank, `[rank]` would often be right
    if kind == "uneven":
        length = max(1, length - draw.whole(0, p - 1))
    elif kind == "few":
        length = draw.whole(1, max(1, (p - 1) // 2))
    shuffle, drop_last = draw.of((False, False), (False, True), (True, False), (True, True))
    seed, epoch = draw.of(0, 1, 1) * draw.whole(1, 9999), draw.of(0, 1) * draw.whole(1, 50)
    setting = (
        length,
        p,
        p - 1 if draw.of(True, False) else draw.whole(0, p - 1),
        shuffle,
        drop_last,
        seed,
        epoch,
    )
    return Case(
        # the options come early, because a long title is cut
        f"length {length}, {p} replicas, rank {setting[2]}"
        + ", shuffle" * shuffle
        + ", drop_last" * drop_last
        + f", seed {seed}, epoch {epoch}",
        [setting],
        right=torch_indices(*setting),
        tolerance=0,
        shown="",
        telling=not shuffle,  # 0, 1, 2, ... shows which index is missing
    )


EXERCISE = Exercise(case, kind=Kind.LOCAL, driver=run_without_torch_sampler, sizes=(1,), count=72)
