"""Count a storage once and as a whole, whether a view, a list, the graph or a gradient retains it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from helpers import launch
from helpers.checks.live_tensors import storage_bytes, tensors_held

KB = 250
"""Elements of float32 in 1,000 bytes."""


def test_views_count_storage_once() -> None:
    x = torch.zeros(KB)
    assert storage_bytes([x[:1]]) == storage_bytes([x, x[3:], None]) == 1000
    assert storage_bytes([x[:1].clone()]) == 4
    x.untyped_storage().resize_(0)
    assert storage_bytes([x]) == 0


def hold(rank: int, world_size: int) -> dict[str, Any]:
    before = torch.zeros(KB)
    with tensors_held() as held:
        own = [torch.zeros(KB)[:1]]
        counted = {"a view in a list": held(), "all but that": held(*own)}
        own.clear()
        counted["nothing"] = held()
        weight = torch.zeros(KB, requires_grad=True)
        loss = (torch.exp(weight * 2) * 3).sum()
        counted["a graph"] = held(weight)
        loss.backward()
        del loss
        counted["a gradient"] = held(weight)
        counted["patience"] = held(most=10)
    counted["before"] = len(before)
    return counted


@pytest.mark.extended
def test_counts_unreleased_tensors_of_block() -> None:
    assert launch(hold, 1).values[0] == {
        "a view in a list": 1000,
        "all but that": 0,
        "nothing": 0,
        "a graph": 1004,  # the result of exp is kept for its backward; the rest is the sum itself
        "a gradient": 1000,
        "patience": 2000,
        "before": KB,
    }


def gathered(rank: int, world_size: int) -> tuple[int, int]:
    with tensors_held() as held:
        shard, whole = torch.zeros(KB), torch.zeros(KB * world_size)
        torch.distributed.all_gather_single(whole, shard)
        kept = held()
        del whole
        return kept, held(most=1000)


@pytest.mark.extended
def test_collective_result_is_freed_without_references() -> None:
    assert launch(gathered, 2).values == [(3000, 1000)] * 2


def sizes(rank: int, world_size: int) -> list[int]:
    with tensors_held() as held:
        kept = [torch.zeros(10), torch.zeros(KB)[:1], torch.zeros(20)]
        held(kept[2])
        return held.sizes


@pytest.mark.extended
def test_lists_storage_sizes_of_last_count() -> None:
    assert launch(sizes, 1).values[0] == [1000, 40]
