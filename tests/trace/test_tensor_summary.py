"""Tensors are read without an operation of torch, and summarized in a short text."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.trace.tensor_summary import summarize


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.tensor([1.0, -2.5, 1 / 3]), "[1 -2.5 0.3333]"),
        (torch.tensor(7), "7"),
        (torch.tensor([[1, 2], [3, 4]]), "[[1 2] [3 4]]"),
        (torch.tensor([True, False]), "[True False]"),
        (torch.tensor([1.5, -3.0], dtype=torch.bfloat16), "[1.5 -3]"),
        (torch.tensor([float("nan"), float("inf")]), "[nan inf]"),
        (torch.tensor([1 + 2j]), "[1+2j]"),
        (torch.arange(4.0)[1:3], "[1 2]"),
        (torch.empty(0), "[]"),
        (torch.ones(2, requires_grad=True), "[1 1]"),
        (torch.arange(9).reshape(3, 3).t(), "?"),
        (torch.empty(3, device="meta"), "?"),
    ],
)
def test_summarizes_values_of_all_dtypes(tensor: torch.Tensor, text: str) -> None:
    assert summarize([tensor]) == text


def test_large_tensor_summary_includes_digest() -> None:
    one, other = torch.zeros(1000), torch.zeros(1000)
    assert summarize([one]) == summarize([other])
    other[500] = 1
    assert summarize([one]) != summarize([other])
    assert summarize([one]).startswith("[0 0 0 … #")


def test_shows_first_of_many_tensors() -> None:
    assert summarize([torch.tensor(n) for n in range(6)]) == "0, 1, 2, 3 …"


def test_skips_freed_storage() -> None:
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    assert summarize([tensor]) == "?"


def test_reads_tensors_without_operations() -> None:
    class FailingMode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            raise AssertionError(func)

    tensors = [torch.ones(3), torch.ones(5000)]
    with FailingMode():
        summarize(tensors)
