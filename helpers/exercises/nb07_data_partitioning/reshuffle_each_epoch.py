"""7.3 Reshuffle each epoch (8 min, ●●○○○)

- `DistributedSampler(data, seed=seed)` asks the process group for rank and world size. The DataLoader takes
  it as `sampler=`.
- The sampler does not count epochs. Tell it the number of the epoch before you read the loader:
  `sampler.set_epoch(epoch)`.
- sampler = DistributedSampler(data, seed=seed); loader = DataLoader(data, batch_size=batch_size,
  sampler=sampler); for epoch in range(epochs): sampler.set_epoch(epoch); seen.append([x for batch in loader
  for x in batch.tolist()]).
"""

from collections.abc import Sequence
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.shared import torch_gives
from helpers.views.plain import plural

FORGOTTEN = "Every epoch has the same order: `sampler.set_epoch(epoch)` comes before each epoch."
LATE = "Each epoch has the order of the one before: set_epoch comes before the loader is read."
FROM_1 = "Your first epoch is torch's epoch 1: the epochs count from 0."
SEED_0 = "This is the order of seed 0: hand `seed` to the sampler."
IN_ORDER = "The values come in order: leave the sampler's `shuffle` as it is, which is True."
MISSING = (
    "Samples are missing: `drop_last` stays as it is, False, in the sampler and in the loader."
)
FLAT = "One flat list of ints for each epoch is wanted, not a list for each batch."
ONE_LIST = "All epochs are in one list: a list for each epoch is wanted."
WHOLE = (
    "Each rank reads the whole of `data`, in an order that is not the sampler's: does the DataLoader have "
    "the sampler?"
)
NO_SHUFFLE = "The sampler shuffles; the DataLoader is given the sampler and no `shuffle`."


def case(draw: Draw) -> Case:
    n, length, size, epochs = draw.ranks, draw.length(1), draw.whole(1, 6), draw.of(1, 2, 3, 4)
    seed, data = (
        draw.of(0, 1, 1) * draw.whole(1, 1000),
        draw.tensor((length,), draw.dtype(*INTEGERS)),
    )
    values: list[int] = data.tolist()

    def read(told: Sequence[int] = range(epochs), **options: Any) -> list[list[list[int]]]:
        """Give what each rank reads if its sampler is told these epochs."""
        options = {"shuffle": True, "seed": seed, **options}
        places = [[torch_gives(length, n, r, epoch=e, **options) for e in told] for r in range(n)]
        return [[[values[i] for i in epoch] for epoch in mine] for mine in places]

    def is_whole(got: Any, rank: int) -> bool:
        try:
            return len(got) == epochs and all(sorted(one) == sorted(values) for one in got)
        except TypeError:
            return False

    right = read()
    batches = [[[one[i : i + size] for i in range(0, len(one), size)] for one in r] for r in right]
    return Case(
        f"{plural(length, 'sample')} of {data.dtype}, {epochs} epoch{'s' * (epochs > 1)}, seed {seed}",
        [(data, size, epochs, seed)] * n,
        right=Each(right),
        mistakes=[
            Mistake(Each(read([0] * epochs)), FORGOTTEN),
            Mistake(Each(read([0, *range(epochs - 1)])), LATE),
            Mistake(Each(read(range(1, epochs + 1))), FROM_1),
            Mistake(Each(read(seed=0)), SEED_0),
            Mistake(Each(read(shuffle=False)), IN_ORDER),
            Mistake(Each(read(drop_last=True)), MISSING),
            Mistake(Each([[one[: len(one) // size * size] for one in r] for r in right]), MISSING),
            Mistake(Each(batches), FLAT),
            Mistake(Each([[x for one in mine for x in one] for mine in right]), ONE_LIST),
            Mistake(is_whole, WHOLE),
        ],
    )


EXERCISE = Exercise(case, (OnlyCalls(()),), failed=(Failed("mutually exclusive", NO_SHUFFLE),))
