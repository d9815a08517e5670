"""Which sample goes to which rank: torch's own DistributedSampler, for any length and world size."""

from __future__ import annotations

from helpers.explorers.form import Control, Shown, choice, steps
from helpers.views.plain import plural
from helpers.views.sample_raster import repeated, sample_raster

_YES = {"no": False, "yes": True}
CONTROLS: tuple[Control, ...] = (
    steps("samples", "samples", range(1, 33)),
    steps("ranks", "ranks", range(1, 9)),
    choice("shuffle", "shuffle", _YES),
    choice("drop_last", "drop_last", _YES),
    choice("set_epoch", "set_epoch", {"yes": True, "forgotten": False}),
)
START = {"samples": 10, "ranks": 4, "shuffle": False, "drop_last": False, "set_epoch": True}


def show(samples: int, ranks: int, shuffle: bool, drop_last: bool, set_epoch: bool) -> Shown:
    """Draw two epochs."""
    epochs = []
    for epoch in range(2):
        given = [
            _given(samples, ranks, rank, shuffle, drop_last, epoch * set_epoch)
            for rank in range(ranks)
        ]
        epochs.append(given)
    first = epochs[0]
    seen = {index for own in first for index in own}
    words = (
        f"{plural(samples, 'sample')} on {plural(ranks, 'rank')}: {plural(len(first[0]), 'step')} an epoch, "
        f"{plural(samples - len(seen), 'sample')} left out, {plural(len(repeated(first)), 'sample')} given "
        f"out twice or more. The second epoch's order is {'the same' if first == epochs[1] else 'another'}."
    )  # fmt: skip
    return Shown(words, (sample_raster(epochs),))


def _given(
    samples: int, ranks: int, rank: int, shuffle: bool, drop_last: bool, epoch: int
) -> list[int]:
    from torch.utils.data import DistributedSampler

    sampler: DistributedSampler[int] = DistributedSampler(
        range(samples),  # type: ignore[arg-type]
        num_replicas=ranks,
        rank=rank,
        shuffle=shuffle,
        drop_last=drop_last,
    )
    sampler.set_epoch(epoch)
    return list(sampler)
