"""Run answers of notebook 07: with several seeds, without torch's sampler, or in many readers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, get_worker_info
from torch.utils.data._utils import worker

MAX_ROUNDS = 16
"""Samples per reader in an endless stream. An answer must yield three samples before the stream ends."""


def run_with_seeds(
    answer: Callable[..., Any], rank: int, world_size: int, length: int, seeds: Sequence[int]
) -> list[Any]:
    """Call the answer once with each seed."""
    return [answer(rank, world_size, length, seed) for seed in seeds]


def run_without_torch_sampler(
    answer: Callable[..., Any], rank: int, world_size: int, *setting: Any
) -> Any:
    """Call the answer with one setting, while torch's sampler raises an error.

    The class raises an error under all its names, and its module cannot be imported again. An answer that
    runs torch's source file, for example with `runpy`, is accepted, like an answer with a copy of the source.
    """
    for method in ("__init__", "__iter__"):
        setattr(DistributedSampler, method, _refuse)
    sys.meta_path.insert(0, _ImportBlocker())
    return answer(*setting)


class _ImportBlocker:
    """Refuses to import the module of torch's sampler again."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == DistributedSampler.__module__:
            _refuse()


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "in this exercise, you write DistributedSampler yourself, so torch's class is disabled"
    )


def run_all_readers(
    answer: Callable[..., Iterable[int]],
    rank: int,
    world_size: int,
    samples: Sequence[int],
    workers: int,
    processes: bool,
) -> list[list[int]]:
    """Return the samples of each of this rank's readers, in worker processes or in turn in this process.

    Each reader is first tried on an endless stream, in this process, with a simulated `get_worker_info()`.
    """
    readers, shares = max(1, workers), []
    nothing: Any = None
    for number in range(readers):
        if workers:
            worker._worker_info = worker.WorkerInfo(
                id=number, num_workers=workers, seed=number, dataset=nothing
            )
        try:
            list(islice(answer(_endless_stream(world_size * readers), rank, world_size), 3))
            shares.append(list(answer(iter(samples), rank, world_size)))
        finally:
            worker._worker_info = None
    return _run_in_processes(answer, rank, world_size, samples, workers) if processes else shares


def _run_in_processes(
    answer: Callable[..., Iterable[int]],
    rank: int,
    world_size: int,
    samples: Sequence[int],
    workers: int,
) -> list[list[int]]:
    shares: list[list[int]] = [[] for _ in range(workers)]
    stream = _Stream(answer, rank, world_size, samples)
    # "fork", because the answer cannot be pickled
    loader = DataLoader(
        stream, batch_size=None, num_workers=workers, multiprocessing_context="fork"
    )
    for reader, sample in loader:
        shares[reader].append(sample)
    return shares


class _Stream(IterableDataset[tuple[int, int]]):
    """The samples yielded by the answer in each worker, each with the id of that worker."""

    def __init__(
        self, answer: Callable[..., Any], rank: int, world_size: int, samples: Sequence[int]
    ) -> None:
        self.answer, self.place, self.samples = answer, (rank, world_size), samples

    def __iter__(self) -> Iterator[tuple[int, int]]:
        info: Any = get_worker_info()
        for sample in self.answer(iter(self.samples), *self.place):
            yield info.id, sample


def _endless_stream(readers: int) -> Iterator[int]:
    yield from range(MAX_ROUNDS * readers)
    raise RuntimeError(
        f"a reader has read {MAX_ROUNDS * readers} samples but returned fewer than three of them. Either "
        "it reads ahead, which is impossible in an endless stream, or its share is too small"
    )
