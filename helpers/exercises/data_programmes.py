"""What the ranks run around an answer of notebook 07: other seeds, many settings, real loaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import torch.utils.data
from torch.utils.data import DataLoader, IterableDataset

MOST_ROUNDS = 16
"""How many rounds of all readers an endless stream gives before the third sample is handed on."""
FIRST, APART = 5, 12
"""The stream's values, FIRST + APART * i: by value, all would belong to one reader of 2, 3, 4 or 6."""


def with_other_seeds(
    answer: Callable[..., Any], rank: int, world_size: int, length: int, seed: int
) -> list[Any]:
    """Call the answer twice with one seed, and once with each of the next three."""
    return [answer(rank, world_size, length, s) for s in (seed, seed, seed + 1, seed + 2, seed + 3)]


def with_many_settings(
    answer: Callable[..., Any], rank: int, world_size: int, settings: list[tuple[Any, ...]]
) -> list[Any]:
    """Call the answer with each setting, torch's own sampler out of reach."""
    torch.utils.data.DistributedSampler = _Withheld  # type: ignore[misc, assignment]
    torch.utils.data.distributed.DistributedSampler = _Withheld  # type: ignore[misc, assignment]
    return [answer(*setting) for setting in settings]


class _Withheld:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("this exercise builds DistributedSampler by hand; torch's is put away")


class _Stream(IterableDataset[int]):
    """As many values as `length` says, sharded by the answer wherever they are read."""

    def __init__(self, answer: Callable[..., Any], rank: int, world_size: int, length: int) -> None:
        self.answer, self.place, self.length = answer, (rank, world_size), length

    def __iter__(self) -> Iterator[int]:
        return iter(self.answer((FIRST + APART * i for i in range(self.length)), *self.place))


def through_a_loader(
    answer: Callable[..., Iterable[int]], rank: int, world_size: int, length: int, workers: int
) -> list[int]:
    """Read a stream through a DataLoader with so many worker processes; an endless one before."""
    list(islice(answer(_endless(world_size), rank, world_size), 3))
    stream = _Stream(answer, rank, world_size, length)
    context = "fork" if workers else None  # a rank is a fork itself: its answer cannot be pickled
    loader = DataLoader(
        stream, batch_size=None, num_workers=workers, multiprocessing_context=context
    )
    return [int(sample) for sample in loader]


def _endless(readers: int) -> Iterator[int]:
    yield from range(MOST_ROUNDS * readers)
    raise RuntimeError(
        f"{MOST_ROUNDS * readers} samples were read before {readers} readers handed on three each: hand "
        "them on as you read, for a stream may have no end"
    )
