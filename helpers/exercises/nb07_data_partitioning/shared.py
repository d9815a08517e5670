"""The indices of torch's sampler, and problems with shares, for notebook 07."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import DistributedSampler


def torch_indices(
    length: int,
    replicas: int,
    rank: int,
    shuffle: bool = False,
    drop_last: bool = False,
    seed: int = 0,
    epoch: int = 0,
) -> list[int]:
    """Return the indices yielded by torch's DistributedSampler."""
    places: Any = range(length)
    sampler: DistributedSampler[int] = DistributedSampler(
        places, replicas, rank, shuffle, seed, drop_last
    )
    sampler.set_epoch(epoch)
    return list(sampler)


def as_int_list(value: Any) -> list[int] | None:
    """Return a list of ints from a list, a tuple or a 1-D tensor; None for anything else."""
    if isinstance(value, torch.Tensor):
        whole = value.dim() == 1 and not (value.is_floating_point() or value.is_complex())
        value = value.tolist() if whole else None
    if not isinstance(value, (list, tuple)):
        return None
    values: list[Any] = [
        v.item() if isinstance(v, torch.Tensor) and v.dim() == 0 else v for v in value
    ]
    return values if all(type(v) is int for v in values) else None


def find_uneven_shares(shares: Mapping[str, Sequence[int]], samples: Sequence[int]) -> str:
    """Return the reason why shares do not divide all samples evenly, or "". shares: {owner's name: share}."""
    left, owner = Counter(samples), dict[int, str]()
    for name, share in shares.items():
        for sample in share:
            if sample not in left:
                return f"{name} has {sample}, which is not one of the samples"
            if not left[sample]:
                other = "it" if owner[sample] == name else owner[sample]
                return f"{name} has {sample}, which {other} already has"
            left[sample] -= 1
            owner[sample] = name
    if missing := [sample for sample in dict.fromkeys(samples) if left[sample]]:
        few = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        return f"no share contains {few}"
    sizes = [len(share) for share in shares.values()]
    if max(sizes) - min(sizes) > 1:
        return (
            f"the shares have {', '.join(map(str, sizes))} samples, which differ by more than one"
        )
    return ""
