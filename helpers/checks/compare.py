"""Compare a rank's returned value with the right value, part by part, without using the answer's types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from helpers.views.plain import plural
from helpers.views.values import short_value

# Allowed relative error of a sum over some ranks, by dtype, because ranks may add in any order.
_SUM_TOLERANCES = {
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
    torch.float32: 1e-5,
    torch.float64: 1e-9,
}
_NUMBER_TOLERANCE = 1e-6
_MAX_RANGE = 100_000


def difference(
    right: Any,
    got: Any,
    tolerance: float | None = None,
    path: str = "",
    scale: float | None = None,
) -> str:
    """Return "" if `got` is right, and otherwise a short description of where and how it differs.

    tolerance: the largest allowed difference, relative to `scale` or, without a scale, to the number or to
    the tensor's largest element. 0 allows no difference.
    """
    if isinstance(right, np.ndarray):
        right = torch.as_tensor(right)
    parts: list[_ComparedPart] = []
    if isinstance(right, torch.Tensor):
        problem = _compare_tensors(right, got, tolerance, scale)
    elif isinstance(right, dict):
        problem, parts = _pair_dicts(right, got)
    elif isinstance(right, (list, tuple)):
        problem, parts = _pair_sequences(right, got)
    elif isinstance(right, (int, float, complex)) and not isinstance(right, bool):
        problem = _compare_numbers(right, got, tolerance)
    else:
        is_same = type(got) is type(right) and got == right
        problem = "" if is_same else f"{_short_text(got)} is not {_short_text(right)}"
    if problem:
        return f"{path}: {problem}" if path else problem
    problems = (
        difference(right_part, got_part, tolerance, f"{path}[{name}]", scale)
        for name, right_part, got_part in parts
    )
    return next(filter(None, problems), "")


def same(right: Any, got: Any, tolerance: float | None = None, scale: float | None = None) -> bool:
    """Return whether `difference` finds two values equal."""
    return not difference(right, got, tolerance, scale=scale)


def _compare_tensors(
    expected: torch.Tensor, actual: Any, tolerance: float | None, scale: float | None
) -> str:
    if isinstance(actual, np.ndarray):
        actual = torch.tensor(actual)  # make a copy, because a received array may be read-only
    if not isinstance(actual, torch.Tensor):
        if expected.dim() == 0 and isinstance(actual, (int, float, complex)):
            return _compare_numbers(expected.item(), actual, tolerance)
        return f"{_short_text(actual)} is not a tensor"
    if actual.shape != expected.shape:
        return f"its shape is {tuple(actual.shape)}, not {tuple(expected.shape)}"
    if actual.dtype != expected.dtype:
        return f"its dtype is {_dtype_name(actual.dtype)}, not {_dtype_name(expected.dtype)}"
    # shape and dtype are compared first: otherwise elements cannot be compared one by one
    wrong = ~_is_close(expected, actual, tolerance, scale)
    if not wrong.any():
        return ""
    index = tuple(int(position) for position in wrong.nonzero()[0])
    got_text, right_text = _distinct_texts(actual[index].item(), expected[index].item())
    if not expected.dim():
        return f"it is {got_text}, not {right_text}"
    element = f"element [{', '.join(map(str, index))}] is {got_text}, not {right_text}"
    if expected.dim() > 2:  # the shape tells a reader what each index means
        element = f"of the shape {tuple(expected.shape)}, {element}"
    count, total = int(wrong.sum()), expected.numel()
    return element if total == 1 else f"{element} ({count} of {total} elements differ)"


def _is_close(
    expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None, scale: float | None
) -> torch.Tensor:
    """Return, for each element, whether it is close enough."""
    # NaN is right if NaN is expected. Infinities may be equal, but their difference is NaN.
    equal = (actual == expected) | ((actual != actual) & (expected != expected))
    if not (expected.is_floating_point() or expected.is_complex()) or tolerance == 0:
        return equal
    relative = tolerance if tolerance is not None else _SUM_TOLERANCES.get(expected.dtype, 1e-5)
    wide_dtype = torch.complex128 if expected.is_complex() else torch.float64
    sizes = expected.to(wide_dtype).abs()
    # use finite elements only, because relative to an infinity all other numbers would be close enough
    finite = sizes[sizes.isfinite()]
    largest = finite.max().item() if finite.numel() else 0.0
    allowed = relative * (largest if scale is None else scale)
    return equal | ((actual.to(wide_dtype) - expected.to(wide_dtype)).abs() <= allowed)


def _compare_numbers(expected: Any, actual: Any, tolerance: float | None) -> str:
    if (isinstance(actual, torch.Tensor) and actual.numel() == 1) or isinstance(actual, np.generic):
        actual = actual.item()
    # True is an int in Python, but is never meant when a task asks for a number
    if isinstance(actual, bool) or not isinstance(actual, (int, float, complex)):
        return f"{_short_text(actual)} is not a number"
    if isinstance(expected, int) and not tolerance:  # compare exactly: isclose computes in floats
        is_close = actual == expected
    elif isinstance(expected, complex) or isinstance(actual, complex):
        is_close = abs(expected - actual) <= (
            _NUMBER_TOLERANCE if tolerance is None else tolerance
        ) * abs(expected)
    else:
        allowed = _NUMBER_TOLERANCE if tolerance is None else tolerance
        is_close = math.isclose(
            actual, expected, rel_tol=allowed, abs_tol=0 if expected else allowed
        )
        is_close = is_close or (math.isnan(expected) and math.isnan(actual))
    if is_close:
        return ""
    got_text, right_text = _distinct_texts(actual, expected)
    return f"{got_text} is not {right_text}"


# The name of one part of a value, the part's right value, and its actual value.
_ComparedPart = tuple[str, Any, Any]


def _pair_dicts(expected: dict[Any, Any], actual: Any) -> tuple[str, list[_ComparedPart]]:
    if not isinstance(actual, dict):
        return f"{_short_text(actual)} is not a dict", []
    for key in expected:
        if key not in actual:
            return f"the key {key!r} is missing", []
    for key in actual:  # a rank may have sent any key, so shorten it
        if key not in expected:
            return f"unexpected key {_short_text(key)}", []
    return "", [(repr(key), value, actual[key]) for key, value in expected.items()]


def _pair_sequences(expected: Any, actual: Any) -> tuple[str, list[_ComparedPart]]:
    if isinstance(actual, torch.Tensor) and all(
        isinstance(element, (int, float)) for element in expected
    ):
        # compare the sizes first, because tolist() may be expensive
        if actual.dim() != 1 or actual.shape[0] != len(expected):
            return (
                f"it is a tensor of shape {tuple(actual.shape)}; expected {plural(len(expected), 'number')}",
                [],
            )
        actual = actual.tolist()
    if not isinstance(actual, (list, tuple, torch.Size)):
        return f"{_short_text(actual)} is not a list or tuple", []
    if len(actual) != len(expected):
        return f"it has {plural(len(actual), 'element')}; expected {len(expected)}", []
    return "", [
        (str(index), one, other)
        for index, (one, other) in enumerate(zip(expected, actual, strict=True))
    ]


def _distinct_texts(actual: Any, expected: Any) -> tuple[str, str]:
    """Write two numbers with enough digits to show their difference."""
    if isinstance(actual, float) and isinstance(expected, float):
        for digits in (5, 7, 9, 12, 17):
            got_text, right_text = f"{actual:.{digits}g}", f"{expected:.{digits}g}"
            if got_text != right_text:
                return got_text, right_text
    return _short_text(actual), _short_text(expected)


def round_floats(value: Any) -> Any:
    """Return a readable value, with the floats in its lists, tuples and dicts rounded to six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if type(value) in {list, tuple}:
        return type(value)(round_floats(part) for part in value[:_MAX_RANGE])
    return (
        {key: round_floats(part) for key, part in value.items()} if type(value) is dict else value
    )


def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _short_text(value: Any) -> str:
    return short_value(value, 60)


def kind_problem(example: Any, got: Any) -> str:
    """Return "" if `got` has the types and keys of an example, and otherwise a description of its kind.

    An empty dict matches any dict, and None matches any value.
    """
    if example is None:
        return ""
    if isinstance(example, dict):
        if not isinstance(got, dict) or (example and set(got) != set(example)):
            return "some of the requested values were not returned"
        return next(
            filter(None, (kind_problem(value, got[key]) for key, value in example.items())), ""
        )
    if isinstance(example, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(example):
            return f"{_short_text(got)} is not a list or tuple of {plural(len(example), 'element')}"
        return next(filter(None, map(kind_problem, example, got)), "")
    if isinstance(example, bool) or not isinstance(example, (int, float)):
        expected_types: Any = type(example)
    else:
        expected_types = (int, float)
    return (
        ""
        if isinstance(got, expected_types)
        else f"{_short_text(got)} is not a {type(example).__name__}"
    )


def describe_kind(value: Any) -> str:
    """Describe a value's kind and size in a few words."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        what = "tensor" if isinstance(value, torch.Tensor) else "array"
        return f"a {what} of shape {tuple(value.shape)} and dtype {_dtype_name(value.dtype)}"
    if isinstance(value, range):
        return f"a range of {_range_length(value):,} numbers"
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"a {type(value).__name__} of {plural(len(value), 'element')}"
    return "None" if value is None else f"a value of type {type(value).__name__}"


def find_huge_range(value: Any, depth: int = 8) -> str:
    """Return a description of a range in a value that is too long to be sent as a list, or "".

    A range is the only value that takes almost no bytes to send, but may take all of a machine's memory to
    write out.
    """
    if isinstance(value, range):
        return describe_kind(value) if _range_length(value) > _MAX_RANGE else ""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)) or not depth:
        return ""
    return next(filter(None, (find_huge_range(part, depth - 1) for part in value)), "")


def _range_length(value: range) -> int:
    """Return the length, even if it is too large for `len()`."""
    return max(0, -((value.start - value.stop) // value.step))
