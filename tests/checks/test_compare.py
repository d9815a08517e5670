"""Compare values part by part, and show differences with enough digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from helpers.checks.compare import difference, kind_problem, same

X = torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("right", "got"),
    [
        (X, X + 1e-7),
        (X, X.numpy()),
        (torch.tensor(3.0), 3.0),
        (torch.tensor([float("nan"), 1.0]), torch.tensor([float("nan"), 1.0])),
        (torch.tensor([float("inf")]), torch.tensor([float("inf")])),
        (3, torch.tensor(3)),
        (0.1 + 0.2, 0.3),
        ((1, 2), [1, 2]),
        ([1, 2], torch.tensor([1, 2])),
        ({"a": [X]}, {"a": [X]}),
        (None, None),
        (torch.empty(0), torch.empty(0)),
        (float("nan"), float("nan")),
    ],
    ids=str,
)
def test_accepts_equal_values(right: Any, got: Any) -> None:
    assert difference(right, got) == ""


@pytest.mark.parametrize(
    ("right", "got", "says"),
    [
        (X, X.double(), "its dtype is float64, not float32"),
        (X, X[None], r"its shape is (1, 3), not (3,)"),
        (X, [1.0, 2.0, 3.0], "is not a tensor"),
        (
            X,
            torch.tensor([1.0, 2.001, 3.0]),
            "element [1] is 2.001, not 2 (1 of 3 elements differ)",
        ),
        (torch.tensor(1.0), torch.tensor(1.0001), "it is 1.0001, not 1"),
        (
            torch.tensor([2**53 + 1]),
            torch.tensor([2**53]),
            "9007199254740992, not 9007199254740993",
        ),
        (2.3985, 2.39851, "2.39851 is not 2.3985"),
        (
            torch.tensor([1e-300], dtype=torch.float64),
            torch.zeros(1, dtype=torch.float64),
            "not 1e-300",
        ),
        (3, 3.5, "3.5 is not 3"),
        (3, True, "is not a number"),
        (True, 1, "1 is not True"),
        ("a", "b", "'b' is not 'a'"),
        ({"a": 1}, {}, "the key 'a' is missing"),
        ({}, {"b": 1}, "unexpected key 'b'"),
        ((1, 2), (1, 3), "[1]: 3 is not 2"),
        ((1, 2), 5, "5 is not a list or tuple"),
        ([1, 2], [1], "it has 1 element; expected 2"),
        ([1, 2], torch.zeros(1 << 10, 0), "it is a tensor of shape (1024, 0); expected 2 numbers"),
        (None, 0, "0 is not None"),
    ],
    ids=str,
)
def test_describes_how_values_differ(right: Any, got: Any, says: str) -> None:
    assert says in difference(right, got)


def test_compares_integers_exactly_beyond_floats() -> None:
    assert not same(2**53 + 1, 2**53, 0)
    assert not same(2**53 + 1, float(2**53), 0)


def test_zero_tolerance_requires_same_bits() -> None:
    assert same(X, X.clone(), 0) and not same(X, X * (1 + 1e-7), 0)


def test_rounding_tolerance_grows_with_scale() -> None:
    near_zero = torch.tensor([1e-6])
    assert not same(torch.zeros(1), near_zero)
    assert same(torch.zeros(1), near_zero, scale=10.0)
    assert not same(torch.zeros(1), near_zero, scale=0.01)


def test_numpy_values_equal_other_numbers() -> None:
    assert same(3, np.int64(3)) and same(np.array([1, 2]), torch.tensor([1, 2]))


@pytest.mark.parametrize(
    ("example", "got", "fits"),
    [
        ({"a": X, "b": True}, {"a": X, "b": False}, True),
        ({"a": X}, {"a": None}, False),
        ({"a": X}, {}, False),
        ([1, 2.0], (3, 4), True),
        ([1], [1, 2], False),
        (1.5, "x", False),
        (None, "anything", True),
    ],
    ids=str,
)
def test_compares_types_and_keys_with_example(example: Any, got: Any, fits: bool) -> None:
    assert (kind_problem(example, got) == "") is fits
