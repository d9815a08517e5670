"""Exercises of notebook 07: which rank gets which sample."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch.utils.data import DataLoader, DistributedSampler

from helpers.checks.rules import Count, OnlyCalls
from helpers.exercises.data_programmes import APART, FIRST
from helpers.exercises.look_at_data import (
    look_at_accuracy,
    look_at_epochs,
    look_at_partition,
    look_at_sampler,
    look_at_stream,
    numbers,
    partition_problem,
    sampler_problem,
    torch_gives,
)
from helpers.exercises.model import Case, Exercise, Kind
from helpers.ranks.run import Run
from helpers.views.values import short_value

NOTEBOOK = "07_data_partitioning"
_PROGRAMMES = "helpers.exercises.data_programmes"
_SEEDS_DIFFER_FROM = 8
"""Samples: with fewer of them two seeds may well give the same order."""


def _partition(rng: random.Random) -> Iterator[Case]:
    for world_size, length in ((2, 10), (3, 20), (4, 6), (3, 2)):
        seed = rng.randrange(1000)
        yield Case(
            f"{world_size} ranks, {length} samples, seed {seed}",
            world_size,
            [(length, seed)] * world_size,
            judge=_is_partition(length),
        )


def _is_partition(length: int) -> Callable[[Run], str]:
    def judge(run: Run) -> str:
        tries: list[list[list[int]]] = []
        for attempt in range(5):
            shards = []
            for rank, value in enumerate(run.values):
                shard = numbers(value[attempt])
                if shard is None:
                    got = short_value(value[attempt], 60)
                    return f"rank {rank} returns {got}: a list of ints is wanted (.tolist() gives one)."
                shards.append(shard)
            if problem := partition_problem(shards, length):
                return problem
            tries.append(shards)
        for rank, (first, again) in enumerate(zip(tries[0], tries[1], strict=True)):
            if first != again:
                return f"rank {rank}, called again with the same seed, gets other samples."
        return _not_shuffled(tries, length) if length >= _SEEDS_DIFFER_FROM else ""

    return judge


def _not_shuffled(tries: list[list[list[int]]], length: int) -> str:
    """Say what is wrong with the order that several seeds give, or ""."""
    if tries[0] == tries[2]:
        return (
            "two seeds give every rank the same samples in the same order: is it shuffled, and does "
            "`seed` reach the generator?"
        )
    if all(set(one[0]) == set(tries[0][0]) for one in tries[2:]):
        return (
            "rank 0 has the same samples with every seed, only in another order: shuffle all samples "
            "first, then deal them out."
        )
    steps = [{(b - a) % length for a, b in pairwise(shard)} for one in tries for shard in one]
    if all(len(apart) <= 1 for apart in steps):
        return "the samples are moved along by the seed, not shuffled: torch.randperm shuffles."
    return ""


def _sampler_indices(rng: random.Random) -> Iterator[Case]:
    def setting(shuffle: bool, drop_last: bool, epochs: int, most: int = 40) -> tuple[Any, ...]:
        replicas = rng.randrange(1, 9)
        epoch = rng.randrange(epochs)
        length, rank = rng.randrange(1, most), rng.randrange(replicas)
        return (length, replicas, rank, shuffle, drop_last, rng.randrange(100), epoch)

    groups = {
        "in order, padded": [setting(False, False, 1) for _ in range(60)],
        "in order, drop_last": [setting(False, True, 1) for _ in range(60)],
        "shuffled": [setting(True, False, 1) for _ in range(60)],
        "shuffled, later epochs": [setting(True, False, 50) for _ in range(60)],
        "anything": [setting(rng.random() < 0.5, rng.random() < 0.5, 9, 12) for _ in range(160)],
    }
    for name, settings in groups.items():
        yield Case(
            f"{len(settings)} settings, {name}",
            1,
            [(settings,)],
            judge=lambda run, settings=settings: sampler_problem(settings, run.values[0]),  # type: ignore[misc]
            init=False,
        )


def _reshuffle_each_epoch(rng: random.Random) -> Iterator[Case]:
    for world_size, length, batch_size, epochs in ((2, 12, 3, 3), (3, 16, 4, 2), (4, 24, 2, 4)):
        seed = rng.randrange(1000)
        data = torch.arange(length) * 3 + rng.randrange(50)
        yield Case(
            f"{world_size} ranks, {length} samples, {epochs} epochs",
            world_size,
            [(data, batch_size, epochs, seed)] * world_size,
            [_epochs(data, world_size, r, batch_size, epochs, seed) for r in range(world_size)],
        )


def _epochs(
    data: torch.Tensor, world_size: int, rank: int, batch_size: int, epochs: int, seed: int
) -> list[list[int]]:
    sampler: DistributedSampler[Any] = DistributedSampler(data, world_size, rank, seed=seed)  # type: ignore[arg-type]
    loader: DataLoader[Any] = DataLoader(data, batch_size=batch_size, sampler=sampler)  # type: ignore[arg-type]
    seen = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        seen.append([sample for batch in loader for sample in batch.tolist()])
    return seen


def _exact_accuracy(rng: random.Random) -> Iterator[Case]:
    for world_size, length in ((3, 10), (2, 9), (4, 3), (4, 8)):
        generator = torch.Generator().manual_seed(rng.randrange(1 << 31))
        labels = torch.randint(0, 5, (length,), generator=generator)
        predicted = torch.where(
            torch.rand(length, generator=generator) < 0.6, labels, (labels + 1) % 5
        )
        # the first samples are repeated as padding: right ones, so that counting them shows
        predicted[:2] = labels[:2]
        wrong = 3 if length > 4 else 1
        predicted[-wrong:] = (labels[-wrong:] + 1) % 5
        shards = [torch_gives(length, world_size, r, False, False, 0, 0) for r in range(world_size)]
        yield Case(
            f"{world_size} ranks, {length} samples",
            world_size,
            [(predicted[shard], labels[shard], length) for shard in shards],
            [(predicted == labels).double().mean().item()] * world_size,
        )


def _shard_stream(rng: random.Random) -> Iterator[Case]:
    for world_size, workers in ((2, 0), (2, 1), (3, 2)):
        length = rng.randrange(13, 20)
        yield Case(
            f"{world_size} ranks, {workers} worker{'s' * (workers != 1)} each, {length} samples",
            world_size,
            [(length, workers)] * world_size,
            judge=_covers_the_stream(length, workers),
        )


def _covers_the_stream(length: int, workers: int) -> Callable[[Run], str]:
    def judge(run: Run) -> str:
        shards: list[list[int]] = []
        for rank, values in enumerate(run.values):
            for value in values:
                if (value - FIRST) % APART:
                    return f"rank {rank} hands on {value}, which the stream does not have."
            shards.append([(value - FIRST) // APART for value in values])
        problem = partition_problem(shards, length)
        # each worker's shard may be one longer than another's, so a rank's may be one a worker
        if not problem.startswith("the ranks have"):
            return problem
        sizes = [len(value) for value in run.values]
        return problem if max(sizes) - min(sizes) > max(1, workers) else ""

    return judge


EXERCISES = (
    Exercise(
        "partition",
        "7.1",
        "A partition by seed",
        NOTEBOOK,
        Kind.MODULE,
        _partition,
        (
            "No rank may tell another which samples it took. How can all of them know the same shuffled "
            "order without a message?",
            "A generator with the same seed gives every rank the same permutation: "
            "`torch.randperm(length, generator=torch.Generator().manual_seed(seed))`. Then each rank "
            "takes its part.",
            "order = torch.randperm(...).tolist(); return order[rank::world_size]. A slice with a step "
            "is balanced by itself.",
        ),
        minutes=8,
        difficulty=1,
        rules=(OnlyCalls(()),),
        programme=f"{_PROGRAMMES}:with_other_seeds",
        look=look_at_partition,
    ),
    Exercise(
        "sampler_indices",
        "7.2",
        "DistributedSampler by hand",
        NOTEBOOK,
        Kind.LOCAL,
        _sampler_indices,
        (
            "Three steps, in this order: the order of all indices; make its length divisible; take every "
            "num_replicas-th. Begin with shuffle=False and drop_last=False.",
            "Shuffle: a generator seeded with seed + epoch, `torch.randperm`. Padding: repeat the order "
            "from its start until the length divides. drop_last: cut the tail instead.",
            "per_rank = length // num_replicas if drop_last else -(-length // num_replicas); total = "
            "per_rank * num_replicas; repeat the order often enough, cut it to total, return "
            "order[rank:total:num_replicas].",
        ),
        minutes=15,
        difficulty=3,
        programme=f"{_PROGRAMMES}:with_many_settings",
        look=look_at_sampler,
    ),
    Exercise(
        "reshuffle_each_epoch",
        "7.3",
        "Reshuffle each epoch",
        NOTEBOOK,
        Kind.RANKS,
        _reshuffle_each_epoch,
        (
            "`DistributedSampler(data, seed=seed)` asks the process group for rank and world size. The "
            "DataLoader takes it as `sampler=`.",
            "The sampler does not count epochs. Tell it the number of the epoch before you read the "
            "loader: `sampler.set_epoch(epoch)`.",
            "sampler = DistributedSampler(data, seed=seed); loader = DataLoader(data, batch_size="
            "batch_size, sampler=sampler); for epoch in range(epochs): sampler.set_epoch(epoch); "
            "seen.append([x for batch in loader for x in batch.tolist()]).",
        ),
        minutes=8,
        difficulty=2,
        rules=(OnlyCalls(()),),
        look=look_at_epochs,
    ),
    Exercise(
        "exact_accuracy",
        "7.4",
        "Exact accuracy",
        NOTEBOOK,
        Kind.RANKS,
        _exact_accuracy,
        (
            "Which of your samples are padding? Position k of rank r is sample r + k * world_size of the "
            "data set, if there is one with that number.",
            "Make a mask: `torch.arange(len(labels)) * world_size + rank < length`. Count the right "
            "answers under it, add up the counts of all ranks, divide once by `length`.",
            "real = torch.arange(len(labels)) * world_size + rank < length; right = ((predicted == "
            "labels) & real).sum(); dist.all_reduce(right); return right.item() / length.",
        ),
        minutes=10,
        difficulty=2,
        rules=(OnlyCalls(("all_reduce",)), Count("all_reduce", 2, at_most=True)),
        look=look_at_accuracy,
    ),
    Exercise(
        "shard_stream",
        "7.5",
        "Shard a stream",
        NOTEBOOK,
        Kind.MODULE,
        _shard_stream,
        (
            "A stream has no length and no index: every reader reads all of it and keeps its share. How "
            "many readers are there in all?",
            "There are world_size times num_workers readers. `torch.utils.data.get_worker_info()` gives "
            "`id` and `num_workers` within a worker process, and None where there is none.",
            "info = get_worker_info(); worker, workers = (info.id, info.num_workers) if info else (0, 1); "
            "shard = rank * workers + worker; return itertools.islice(stream, shard, None, world_size * "
            "workers).",
        ),
        minutes=12,
        difficulty=3,
        rules=(OnlyCalls(()),),
        programme=f"{_PROGRAMMES}:through_a_loader",
        look=look_at_stream,
        further=True,
    ),
)
