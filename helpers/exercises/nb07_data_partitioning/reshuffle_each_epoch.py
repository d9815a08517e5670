"""7.3 Reshuffle each epoch (8 min, ●●○○○)

- `DistributedSampler(data, seed=seed)` asks the process group for rank and world size. Pass the sampler to
  the DataLoader as `sampler=`.
- The sampler doesn't count epochs. Before reading the loader, tell the sampler the number of the epoch by
  calling `sampler.set_epoch(epoch)`.
- sampler = DistributedSampler(data, seed=seed); loader = DataLoader(data, batch_size=batch_size,
  sampler=sampler); for epoch in range(epochs): sampler.set_epoch(epoch); seen.append([x for batch in loader
  for x in batch.tolist()]).
"""

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.shared import torch_indices


def case(draw: Draw) -> Case:
    n, length, size, epochs = draw.ranks, draw.length(1), draw.whole(1, 6), draw.of(1, 2, 3, 4)
    seed, data = (
        draw.of(0, 1, 1) * draw.whole(1, 1000),
        draw.tensor((length,), draw.dtype(*INTEGERS)),
    )
    values: list[int] = data.tolist()

    def expected_epochs(rank: int) -> list[list[int]]:
        epochs_of_torch = [
            torch_indices(length, n, rank, shuffle=True, seed=seed, epoch=epoch)
            for epoch in range(epochs)
        ]
        return [[values[i] for i in indices] for indices in epochs_of_torch]

    return Case(
        f"{plural(length, 'sample')} of {data.dtype}, {epochs} epoch{'s' * (epochs > 1)}, seed {seed}",
        [(data, size, epochs, seed)] * n,
        right=PerRank([expected_epochs(rank) for rank in range(n)]),
    )


EXERCISE = Exercise(case, (OnlyCalls(()),))
