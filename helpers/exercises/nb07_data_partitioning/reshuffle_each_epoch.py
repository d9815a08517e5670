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
    [[[one[i : i + size] for i in range(0, len(one), size)] for one in r] for r in right]
    return Case(
        f"{plural(length, 'sample')} of {data.dtype}, {epochs} epoch{'s' * (epochs > 1)}, seed {seed}",
        [(data, size, epochs, seed)] * n,
        right=Each(right),
    )


EXERCISE = Exercise(
    case,
    (OnlyCalls(()),),
)
