"""Modules named in a program's text are imported before the fork; without such names, nothing is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from msgspec import DecodeError

from helpers.ranks import launcher
from helpers.ranks.launcher import launch
from helpers.ranks.payload import make_payload
from helpers.ranks.preload_scan import find_imports, torch_modules
from helpers.ranks.world import NAMES_DECODER


def plain(rank: int, world_size: int) -> float:
    x = torch.ones(4)
    dist.all_reduce(x)
    return float(x[0])


def trains(rank: int, world_size: int) -> Any:
    return torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)


def wraps(rank: int, world_size: int) -> Any:
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))


@pytest.fixture
def no_server() -> Iterator[None]:
    """Start the test without a rank server, so that a new one has imported nothing; end it afterwards."""
    launcher.disconnect()
    yield
    launcher.disconnect()


def of(fn: Callable[..., Any]) -> list[str]:
    fn.__module__ = "__main__"  # send it by value, like a cell's function, not by its module's name
    load = make_payload(fn, 2, (), None)
    return find_imports(load.shared, *load.per_rank)


def test_plain_program_needs_no_imports() -> None:
    assert of(plain) == []


@pytest.mark.parametrize("fn", [trains, wraps])
def test_optimizer_programs_need_dynamo_import(fn: Callable[..., Any]) -> None:
    assert "torch._dynamo" in of(fn)


def gives_a_gradient(rank: int, world_size: int) -> int:
    known = len(sys.modules)
    (torch.ones(3, requires_grad=True) * 2).backward(torch.ones(3))
    return len(sys.modules) - known


@pytest.mark.extended
def test_next_launch_preloads_previous_imports(no_server: None) -> None:
    gives_a_gradient.__module__ = "__main__"
    first, second = (launch(gives_a_gradient, 2).values for _ in range(2))
    assert min(first) > 400 and max(second) < 20, (first, second)


def test_explicit_gradient_programs_need_symbolic_shapes() -> None:
    symbolic = ["torch.fx.experimental.symbolic_shapes"]
    assert (
        find_imports(b"y.backward(torch.ones(3))")
        == find_imports(b"autograd.grad(y, x)")
        == symbolic
    )
    assert find_imports(b"y.backward()") == find_imports(b"y.backward(retain_graph=True)") == []


def test_accepts_only_torch_module_names() -> None:
    assert torch_modules(["os", "torch", "torch.x y", "torch.\u0430", "torch._inductor.x"]) == []
    assert torch_modules(["torch.nn.functional", "torchvision.ops"]) == ["torch.nn.functional"]


@pytest.mark.parametrize("body", [b"null", b'{"torch.nn": 1}', b'["torch.nn", 7]'])
def test_rejects_malformed_import_reports(body: bytes) -> None:
    with pytest.raises(DecodeError):
        NAMES_DECODER.decode(body)
