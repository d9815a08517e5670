"""What a programme's text names is imported before the fork; a text that names nothing waits for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.payload import make_payload
from helpers.ranks.wanted import wanted_by


def plain(rank: int, world_size: int) -> float:
    x = torch.ones(4)
    dist.all_reduce(x)
    return float(x[0])


def trains(rank: int, world_size: int) -> Any:
    return torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)


def wraps(rank: int, world_size: int) -> Any:
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))


def of(fn: Callable[..., Any]) -> list[str]:
    fn.__module__ = "__main__"  # a cell's function travels by value, not by its module's name
    load = make_payload(fn, 2, (), None)
    return wanted_by(load.shared, *load.own)


def test_a_programme_that_names_none_of_it_wants_nothing() -> None:
    assert of(plain) == []


@pytest.mark.parametrize("fn", [trains, wraps])
def test_who_trains_wants_what_the_first_optimizer_imports(fn: Callable[..., Any]) -> None:
    assert "torch._dynamo" in of(fn)
