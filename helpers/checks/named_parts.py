"""Judge a dict returned by a rank: each named part is a value or an observation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from helpers.checks.case import Finding
from helpers.checks.compare import difference

Parts = Mapping[str, Any]
"""One rank's returned values, by name."""


@dataclass(frozen=True)
class NamedParts:
    """Judges a dict returned by a driver, part by part.

    right[r] belongs to rank r, and its parts are judged in order. If the right value of a part is "", the
    part is an observation of the driver, and any other string describes a problem. If the right value is not
    a string, a returned string explains why the driver has no value. scale: the size of the summed numbers,
    or {name: size} for the parts. advice: a function that takes the name of the first wrong part and all
    parts, and returns a sentence or ""; or a dict of such sentences by name. unused: parts that may be None
    or zeros, such as gradients that no rank has.
    """

    right: Sequence[Parts]
    scale: float | Mapping[str, float] | None = None
    advice: Callable[[str, Parts], str] | Mapping[str, str] | None = None
    unused: frozenset[str] = frozenset()

    def __call__(self, got: Any, rank: int) -> Finding | None:
        """Judge one rank's returned value."""
        name, problem = self.first_problem(got, rank)
        if not problem:
            return None
        advice = ""
        if self.advice is not None and name:
            advice_source = self.advice
            advice = (
                advice_source(name, got) if callable(advice_source) else advice_source.get(name, "")
            )
        is_observation = (
            not name or self.right[rank].get(name) == ""
        )  # an observation is shown unchanged
        return Finding(problem if is_observation else f"{name}: {problem}", advice)

    def first_problem(self, got: Any, rank: int) -> tuple[str, str]:
        """Return the name of the first wrong part, and its difference from the right value."""
        if not isinstance(got, dict):
            return "", "nothing was returned"
        for name, expected in self.right[rank].items():
            if problem := self._part_problem(name, expected, got.get(name)):
                return name, problem
        return "", ""

    def wrong_parts(self, got: Any, rank: int) -> list[str]:
        """Return the names of all wrong parts."""
        if not isinstance(got, dict):
            return list(self.right[rank])
        return [
            name
            for name, expected in self.right[rank].items()
            if self._part_problem(name, expected, got.get(name))
        ]

    def _part_problem(self, name: str, expected: Any, value: Any) -> str:
        if name in self.unused and (value is None or (expected is None and _is_zero(value))):
            return ""
        if isinstance(expected, str):
            if isinstance(value, str) and value == expected:
                return ""
            text = _text_or_nothing(value)
            return f"{text}; expected: {expected}" if expected else text
        if isinstance(value, str):
            # this text explains why the driver has no value
            return value
        if value is None and expected is not None:
            return "it is missing"
        return difference(expected, value, scale=self._scale_of(name))

    def same(self, one: Any, other: Any, rank: int, names: Sequence[str] = ()) -> bool:
        """Return whether two programs' values agree in all judged parts, or in the parts called `names`."""
        # a hostile rank may return any value instead of the driver's result
        if not (isinstance(one, dict) and isinstance(other, dict)):
            return one is None and other is None
        return all(
            not difference(other.get(name), one.get(name), scale=self._scale_of(name))
            for name in names or self.right[rank]
        )

    def _scale_of(self, name: str) -> float | None:
        return self.scale.get(name) if isinstance(self.scale, Mapping) else self.scale


def _is_zero(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.any()


def _text_or_nothing(value: Any) -> str:
    return "nothing" if value is None or value == "" else str(value)


def largest(*values: Any) -> float:
    """Return the size of the largest number in tensors, or in dicts of tensors; 0 if there is none."""
    flat_values = [
        value
        for value in values
        for value in (value.values() if isinstance(value, dict) else [value])
    ]
    tensors = [value for value in flat_values if isinstance(value, torch.Tensor) and value.numel()]
    return max((float(value.double().abs().max()) for value in tensors), default=0.0)
