"""Is what a rank gave back what it had to give? Compared with our own types, part by part."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

_TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5, torch.float64: 1e-9}


def difference(expected: Any, got: Any, tolerance: float | None = None, path: str = "") -> str:
    """Give "" if `got` is what `expected` says, else a few words on where and how it differs."""
    if callable(expected):
        return str(expected(got))
    where = f"{path}: " if path else ""
    if isinstance(expected, torch.Tensor):
        return where + problem if (problem := _tensors(expected, got, tolerance)) else ""
    if isinstance(expected, np.ndarray):
        return difference(torch.as_tensor(expected), got, tolerance, path)
    if isinstance(expected, dict):
        return _dicts(expected, got, tolerance, path)
    if isinstance(expected, (list, tuple)):
        return _sequences(expected, got, tolerance, path)
    if isinstance(expected, (int, float, complex)) and not isinstance(expected, bool):
        return where + problem if (problem := _numbers(expected, got, tolerance)) else ""
    if type(got) is not type(expected) or got != expected:
        return f"{where}{_short(got)} is not {_short(expected)}"
    return ""


def _tensors(expected: torch.Tensor, got: Any, tolerance: float | None) -> str:
    if isinstance(got, np.ndarray):
        got = torch.tensor(got)  # a copy: an array from the wire may not be written to
    if not isinstance(got, torch.Tensor):
        if expected.dim() == 0 and isinstance(got, (int, float, complex)):
            return _numbers(expected.item(), got, tolerance)
        return f"{_short(got)} is not a tensor"
    if got.shape != expected.shape:
        return f"its shape is {tuple(got.shape)}, not {tuple(expected.shape)}"
    if got.dtype != expected.dtype:
        return f"its dtype is {got.dtype}, not {expected.dtype}"
    if not expected.is_floating_point() and not expected.is_complex():
        same = torch.equal(got, expected)
    else:
        close = tolerance if tolerance is not None else _TOLERANCE.get(expected.dtype, 1e-5)
        same = torch.allclose(got, expected, rtol=close, atol=close, equal_nan=True)
    if same:
        return ""
    wrong = int((~torch.isclose(got.double(), expected.double(), equal_nan=True)).sum())
    return (
        f"{wrong} of {expected.numel()} elements differ" if expected.numel() > 1 else "it differs"
    )


def _numbers(expected: Any, got: Any, tolerance: float | None) -> str:
    if isinstance(got, torch.Tensor) and got.numel() == 1 or isinstance(got, np.generic):
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, (int, float, complex)):
        return f"{_short(got)} is not a number"
    if isinstance(expected, int) and tolerance is None:
        return "" if got == expected else f"{_short(got)} is not {expected}"
    if isinstance(expected, complex) or isinstance(got, complex):
        close = abs(expected - got) <= (tolerance or 1e-6) * max(1.0, abs(expected))
    else:
        close = math.isclose(got, expected, rel_tol=tolerance or 1e-6, abs_tol=tolerance or 1e-9)
        close = close or (math.isnan(expected) and math.isnan(got))
    return "" if close else f"{_short(got)} is not {_short(expected)}"


def _dicts(expected: dict[Any, Any], got: Any, tolerance: float | None, path: str) -> str:
    if not isinstance(got, dict):
        return f"{path + ': ' if path else ''}{_short(got)} is not a dict"
    for key in expected:
        if key not in got:
            return f"{path + ': ' if path else ''}the key {key!r} is missing"
    for key in got:
        if key not in expected:
            return f"{path + ': ' if path else ''}there is a key {_short(key)} too many"
    for key, value in expected.items():
        if problem := difference(value, got[key], tolerance, f"{path}[{key!r}]"):
            return problem
    return ""


def _sequences(expected: Any, got: Any, tolerance: float | None, path: str) -> str:
    if isinstance(got, torch.Tensor) and all(isinstance(v, (int, float)) for v in expected):
        got = got.tolist()
    where = f"{path}: " if path else ""
    if not isinstance(got, (list, tuple, torch.Size)):
        return f"{where}{_short(got)} is not a list or tuple"
    if len(got) != len(expected):
        return f"{where}{len(got)} parts, not {len(expected)}"
    for index, (one, other) in enumerate(zip(expected, got, strict=True)):
        if problem := difference(one, other, tolerance, f"{path}[{index}]"):
            return problem
    return ""


def _short(value: Any) -> str:
    from helpers.views.values import short_value

    return short_value(value, 60)
