"""What is wrong with an answer of notebook 07, and what to look at first."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import DistributedSampler

from helpers.exercises.compare import difference
from helpers.exercises.model import Case
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run
from helpers.views.values import short_value

SETTING = ("length", "num_replicas", "rank", "shuffle", "drop_last", "seed", "epoch")
"""The parameters of `sampler_indices`, in its order."""


def numbers(value: Any) -> list[int] | None:
    """Give a list of ints, whether it came as a list, a tuple, a range or a tensor; else None."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return None
    if any(isinstance(part, bool) or not hasattr(part, "__index__") for part in value):
        return None
    try:
        return [operator.index(part) for part in value]
    except TypeError:  # a tensor of floats, or of several elements
        return None


def partition_problem(shards: Sequence[Sequence[int]], length: int) -> str:
    """Say what keeps the ranks' shards from being a balanced partition of range(length), or ""."""
    owner: dict[int, int] = {}
    for rank, shard in enumerate(shards):
        for index in shard:
            if not 0 <= index < length:
                return f"rank {rank} has sample {index}, but there are only 0 to {length - 1}."
            if index in owner:
                other = f"rank {owner[index]}" if owner[index] != rank else "it"
                return f"rank {rank} has sample {index}, which {other} has already."
            owner[index] = rank
    missing = sorted(set(range(length)) - set(owner))
    if missing:
        few = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        return f"no rank has sample{'s' * (len(missing) > 1)} {few}."
    sizes = [len(shard) for shard in shards]
    if max(sizes) - min(sizes) > 1:
        return f"the ranks have {', '.join(map(str, sizes))} samples: more than one apart."
    return ""


def look_at_partition(case: Case, run: Run) -> str:
    """Say what `partition` mostly gets wrong."""
    length = case.inputs[0][0]
    firsts = [numbers(value[0]) for value in run.values if value] if run.failure is None else []
    shards = [first for first in firsts if first is not None]
    if len(shards) < case.world_size:
        return ""
    if partition_problem(shards, length).startswith("no rank"):
        return "The remainder of the division belongs to somebody: one sample more for some ranks."
    if any(set(shards[0]) & set(other) for other in shards[1:]):
        if len({len(shard) for shard in shards}) == 1 and length % case.world_size:
            return (
                "All ranks have equally many, so some samples were repeated. Here nothing is repeated: "
                "the numbers may differ by one."
            )
        return (
            "All ranks must draw the same order: shuffle with a generator that is seeded with `seed`, "
            "then take your part."
        )
    return ""


def torch_gives(
    length: int, replicas: int, rank: int, shuffle: bool, drop_last: bool, seed: int, epoch: int
) -> list[int]:
    """Give what torch's own DistributedSampler yields."""
    sampler: DistributedSampler[int] = DistributedSampler(
        range(length),  # type: ignore[arg-type]
        num_replicas=replicas,
        rank=rank,
        shuffle=shuffle,
        seed=seed,
        drop_last=drop_last,
    )
    sampler.set_epoch(epoch)
    return list(sampler)


def sampler_problem(settings: Sequence[tuple[Any, ...]], got: Any) -> str:
    """Name the first setting for which an answer differs from torch's DistributedSampler, or ""."""
    if not isinstance(got, list) or len(got) != len(settings):
        return "no list came back for some settings."
    for setting, mine in zip(settings, got, strict=True):
        right = torch_gives(*setting)
        if numbers(mine) != right:
            named = ", ".join(f"{n}={v}" for n, v in zip(SETTING, setting, strict=True))
            return (
                f"for {named}: torch gives {short_value(right, 80)}, yours {short_value(mine, 80)}."
            )
    return ""


def look_at_sampler(case: Case, run: Run) -> str:
    """Say what `sampler_indices` mostly gets wrong."""
    settings, got = case.inputs[0][0], run.values[0]
    if run.failure is not None or not isinstance(got, list) or len(got) != len(settings):
        return ""
    setting, mine = next(
        ((s, m) for s, m in zip(settings, got, strict=True) if numbers(m) != torch_gives(*s)),
        (None, None),
    )
    own = numbers(mine)
    if setting is None:
        return ""
    if own is None:
        return "Return a list of ints."
    length, replicas, rank, shuffle, drop_last, seed, epoch = setting
    if not shuffle and sorted(own) == sorted(torch_gives(*setting)) and own != sorted(own):
        return "With shuffle=False the order is 0, 1, 2, ...: shuffle only where it is asked for."
    if own == torch_gives(length, replicas, rank, shuffle, drop_last, seed, 0):
        return (
            "The epoch makes no difference here: torch's generator is seeded with `seed + epoch`."
        )
    if drop_last and len(own) != length // replicas:
        return "With drop_last the tail that does not divide is left out, on every rank alike."
    if not drop_last and 2 * length < replicas:
        return "Where the padding is longer than the data, the data is repeated more than once."
    if not drop_last and len(own) != -(-length // replicas):
        return "Every rank gets the same number of samples: the length is padded, then divided."
    if len(own) > 1 and not shuffle and own == list(range(own[0], own[0] + len(own))):
        return "This rank takes a block; torch's takes every p-th position, p = num_replicas."
    if shuffle:
        return (
            "In order it is right; shuffled it is not. The order must be torch.randperm(length, "
            "generator=g) with g = torch.Generator().manual_seed(seed + epoch); padding repeats it "
            "from its start."
        )
    return "Padding repeats the first samples; a rank takes every p-th position."


def look_at_epochs(case: Case, run: Run) -> str:
    """Say what `reshuffle_each_epoch` mostly gets wrong."""
    if run.failure is not None:
        if (
            isinstance(run.failure, RankFailed)
            and "mutually exclusive" in run.failure.error.message
        ):
            return "The sampler shuffles; the DataLoader is given the sampler and no `shuffle`."
        return ""
    value = run.values[0]
    if not isinstance(value, list) or case.expected is None:
        return ""
    data, _, epochs, seed = case.inputs[0]
    if len(value) != epochs or any(isinstance(v, list) for one in value for v in _parts(one)):
        return (
            f"{epochs} lists are wanted, one flat list of ints for each epoch, not for each batch."
        )
    if any(len(one) < len(right) for one, right in zip(value, case.expected[0], strict=True)):
        return (
            "Samples are missing at the end: `drop_last` stays off, in the loader and the sampler."
        )
    if any(list(one) == sorted(one) for one in value if len(one) > 3):
        return "The values come in order: leave the sampler's `shuffle` as it is, which is True."
    if seed and value[0] == _epoch_of(data, case.world_size, 0, 0):
        return "This is the order of seed 0: hand `seed` to the sampler."
    if value[0] == _epoch_of(data, case.world_size, seed, 1):
        return "Your first epoch is torch's epoch 1: the epochs count from 0."
    if len(value) > 1 and all(epoch == value[0] for epoch in value):
        return "Every epoch has the same order: `sampler.set_epoch(epoch)` comes before each epoch."
    if value[1:] == case.expected[0][:-1]:
        return (
            "Each epoch has the order of the one before: set_epoch comes before the loader is read."
        )
    if len({str(each) for each in run.values}) == 1:
        return "All ranks see the same samples: does the DataLoader have the sampler?"
    return ""


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _epoch_of(data: torch.Tensor, replicas: int, seed: int, epoch: int) -> list[int]:
    """Give the values that rank 0 reads in one epoch, by torch's own sampler."""
    return [int(data[i]) for i in torch_gives(len(data), replicas, 0, True, False, seed, epoch)]


def look_at_accuracy(case: Case, run: Run) -> str:
    """Say what `exact_accuracy` mostly gets wrong."""
    value = run.values[0]
    if run.failure is not None or not isinstance(value, (float, int, torch.Tensor)):
        return ""
    if any(each is None for each in run.values):
        return ""
    right = [(given[0] == given[1]).sum().item() for given in case.inputs]
    each, length = len(case.inputs[0][0]), case.inputs[0][2]
    if isinstance(value, torch.Tensor) and value.numel() != 1:
        return ""
    if float(value) != float(value):
        return "A rank without real samples divides 0 by 0: add up counts, and divide once, at the end."
    if difference(sum(right) / length, value) == "":
        return "The sum of right answers still holds those of padded samples."
    shares = [
        _share(given, rank, case.world_size, length) for rank, given in enumerate(case.inputs)
    ]
    if difference(sum(shares) / len(shares), value) == "":
        return (
            "This is the mean of the ranks' accuracies. Ranks with fewer real samples weigh too much: "
            "add up counts, and divide once."
        )
    if difference(sum(right) / (each * case.world_size), value) == "":
        return "The padded samples are counted: which of a rank's positions lie beyond the data?"
    if difference(shares[0], value) == "" or difference(right[0] / each, value) == "":
        return "This is the accuracy of rank 0's own samples; the whole data set is asked for."
    if not run.trace.calls:
        return "Each rank has its own count of right answers: add them up by `all_reduce`."
    return (
        "Number a rank's samples: position k on rank r is sample r + k * world_size. Which of these "
        "numbers are below `length`? And divide by `length` alone."
    )


def _share(given: Sequence[Any], rank: int, world_size: int, length: int) -> float:
    predicted, labels, _ = given
    real = torch.arange(len(labels)) * world_size + rank < length
    return (predicted == labels)[real].double().mean().item() if real.any() else 0.0


def look_at_stream(case: Case, run: Run) -> str:
    """Say what `shard_stream` mostly gets wrong."""
    workers = case.inputs[0][1]
    if run.failure is not None or not all(isinstance(value, list) for value in run.values):
        return ""
    if workers and any(len(set(value)) < len(value) for value in run.values):
        return (
            "Within one rank samples come twice: each worker process reads the whole stream. "
            "`torch.utils.data.get_worker_info()` tells a worker who it is."
        )
    if case.world_size > 1 and sorted(run.values[0]) == sorted(run.values[1]) != []:
        return "The ranks read the same samples: the shard's number must depend on the rank."
    if case.world_size > 1 and any(set(run.values[0]) & set(other) for other in run.values[1:]):
        return (
            "Two readers have the same number. With w workers a rank's readers are rank * w, rank * w "
            "+ 1, ...: all readers together 0, 1, 2, ..."
        )
    return ""
