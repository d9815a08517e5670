"""7.2 DistributedSampler by hand (15 min, ●●●○○)

- Three steps, in this order: the order of all indices; make its length divisible; take every
  num_replicas-th. Begin with shuffle=False and drop_last=False.
- Shuffle: a generator seeded with seed + epoch, `torch.randperm`. Padding: repeat the order from its start
  until the length divides. drop_last: cut the tail instead.
- per_rank = length // num_replicas if drop_last else -(-length // num_replicas); total = per_rank *
  num_replicas; repeat the order often enough, cut it to total, return order[rank:total:num_replicas].
"""

from collections.abc import Iterator

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.in_ranks import without_torchs_sampler
from helpers.exercises.nb07_data_partitioning.shared import numbers, torch_gives

SETTING = ("length", "num_replicas", "rank", "shuffle", "drop_last", "seed", "epoch")


def case(draw: Draw) -> Case:
    p, kind = draw.of(1, 2, 3, 4, 5, 6, 7, 8), draw.of("few", "even", "uneven", "uneven")
    length = p * draw.whole(1, 4)
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
        ", ".join(f"{name}={value}" for name, value in zip(SETTING, setting, strict=True)),
        [setting],
        right=torch_gives(*setting),
        mistakes=list(usual(*setting)),
        tolerance=0,
        shown="",
    )


def usual(
    length: int, p: int, rank: int, shuffle: bool, drop_last: bool, seed: int, epoch: int
) -> Iterator[Mistake]:
    """Give what one mistake in one of the three steps gives."""

    def torchs(
        shuffle: bool = shuffle, drop_last: bool = drop_last, seed: int = seed, epoch: int = epoch
    ) -> list[int]:
        return torch_gives(length, p, rank, shuffle, drop_last, seed, epoch)

    def padded(*more: int) -> list[int]:
        return [*order, *more][rank : each * p : p]

    order = torch_gives(length, 1, 0, shuffle, drop_last, seed, epoch)
    each = length // p if drop_last else -(-length // p)
    lacking = each * p - length
    yield Mistake(torchs(epoch=0), "The epoch makes no difference here: " + GENERATOR)
    yield Mistake(torchs(seed=0), "The seed makes no difference here: " + GENERATOR)
    yield Mistake(torchs(shuffle=not shuffle), "Shuffle where `shuffle` is True, and only there.")
    if lacking > length:
        once = "Where the padding is longer than the data, the data is repeated more than once."
        yield Mistake(padded(*order[:lacking]), once)
    for wrong in (order[-1:], [0], order[::-1], order[-lacking:], list(range(length))):
        yield Mistake(padded(*wrong * max(lacking, 0)), "Padding repeats the order from its start.")
    yield Mistake(order[rank::p], "Every rank gets the same number of samples: " + ALIKE)
    yield Mistake(torchs(drop_last=not drop_last), "`drop_last` decides: " + ALIKE)
    block = (order * p)[rank * each : (rank + 1) * each]
    yield Mistake(block, "This rank takes a block; torch's takes every p-th position.")
    yield Mistake(
        lambda got, _: shuffle and len(mine := numbers(got) or []) == each and {*mine} <= {*order},
        "`torch.randperm(length, generator=g)` gives the shuffled order, with g = "
        "torch.Generator().manual_seed(seed + epoch).",
    )


GENERATOR = "torch's generator is seeded with `seed + epoch`."
ALIKE = "with drop_last the tail is left out, without it the order is padded, on every rank alike."
EXERCISE = Exercise(case, kind=Kind.LOCAL, programme=without_torchs_sampler, sizes=(1,), count=72)
