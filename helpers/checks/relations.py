"""Advise on wrong values: find a sentence that explains every wrong rank of every wrong case.

`RELATIONS` lists simple relations between a wrong value and the right one, which apply to any exercise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from helpers.checks.answer_shape import NO_SHAPE, AnswerShape
from helpers.checks.case import AllRanks, Case, Finding, PerRank, value_for_rank
from helpers.checks.compare import same
from helpers.checks.execution import Execution

_FLOAT32_TOLERANCE = 1e-6
NOTHING_RETURNED_ADVICE = "The function returns nothing. Does every path have a `return`?"
PRINTED_ONLY_ADVICE = "The function prints, but returns nothing. Return the value instead."
_RESULT_OF_CALL_ADVICE = (
    "`{call}` returns None: it writes into a tensor that you pass. Return that tensor, not the result of the "
    "call."
)


@dataclass(frozen=True)
class WrongValue:
    """A rank's wrong value, next to the right one. shape: the shape of the answer that returned it."""

    case: Case
    rank: int
    got: Any
    shape: AnswerShape = NO_SHAPE

    @cached_property
    def right(self) -> Any:
        return value_for_rank(self.case.right, self.rank)

    @cached_property
    def tensors(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The right and the wrong value if both are numbers or tensors of the same shape, otherwise None.

        A number is compared like a tensor of one element.
        """
        right, got = self.right, self.got
        if type(got) is not type(right) or isinstance(right, bool):
            return None
        if not isinstance(right, (int, float, torch.Tensor)):
            return None
        expected, returned = torch.as_tensor(right), torch.as_tensor(got)
        is_comparable = expected.shape == returned.shape and expected.numel()
        return (expected, returned) if is_comparable else None

    @cached_property
    def doubles(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The tensors of `tensors`, converted to 64-bit numbers."""
        return (
            None if self.tensors is None else (self.tensors[0].double(), self.tensors[1].double())
        )


@dataclass(frozen=True)
class Relation:
    """A relation of a wrong value to the right one. words: the advice."""

    name: str
    applies: Callable[[WrongValue], bool]
    words: str
    asks_for_factor: bool = False
    """Whether the advice multiplies every result by a factor, which must not make a right result wrong."""


def _is_argument(wrong: WrongValue) -> bool:
    given = wrong.case.given[wrong.rank]
    return any(same(value, wrong.got, 0) for value in given if isinstance(value, torch.Tensor))


def _is_nothing(wrong: WrongValue) -> bool:
    return wrong.got is None and wrong.shape.may_return_nothing


def _is_value_of_other(wrong: WrongValue) -> bool:
    case = wrong.case
    return isinstance(case.right, PerRank) and any(
        same(case.right.values[other], wrong.got, case.tolerance)
        for other in range(case.world_size)
        if other != wrong.rank
    )


def _is_result_of_wait(wrong: WrongValue) -> bool:
    return isinstance(wrong.right, torch.Tensor) and wrong.got is True


def _is_list_of_values(wrong: WrongValue) -> bool:
    right, got = wrong.right, wrong.got
    return (
        isinstance(right, torch.Tensor)
        and isinstance(got, (list, tuple))
        and right.dim() == 1
        and same(right.tolist(), list(got))
    )


def _is_reordered_list(wrong: WrongValue) -> bool:
    right, got = wrong.right, wrong.got
    if not isinstance(right, (list, tuple)) or not isinstance(got, (list, tuple)):
        return False
    return len(got) == len(right) and sorted(map(repr, right)) == sorted(map(repr, got))


def _differs_in_dtype(wrong: WrongValue) -> bool:
    if wrong.tensors is None or wrong.doubles is None:
        return False
    expected, returned = wrong.tensors
    return expected.dtype != returned.dtype and torch.equal(*wrong.doubles)


def _has_wide_dtype(wrong: WrongValue) -> bool:
    wide = {torch.float64, torch.int64, torch.int32}
    if wrong.tensors is None:
        return False
    expected, returned = wrong.tensors
    return expected.dtype == returned.dtype and expected.dtype in wide


def _is_rounded_to_float32(wrong: WrongValue) -> bool:
    if wrong.tensors is None or not _has_wide_dtype(wrong):
        return False
    expected, returned = wrong.tensors
    return torch.equal(expected.float().to(expected.dtype), returned)


def _agrees_to_float32(wrong: WrongValue) -> bool:
    if wrong.tensors is None or not _has_wide_dtype(wrong) or _is_rounded_to_float32(wrong):
        return False
    expected, returned = wrong.tensors
    return expected.is_floating_point() and same(expected, returned, _FLOAT32_TOLERANCE)


def _is_too_large(wrong: WrongValue) -> bool:
    return _is_multiple(wrong, wrong.case.world_size)


def _is_too_small(wrong: WrongValue) -> bool:
    return _is_multiple(wrong, 1 / wrong.case.world_size)


def _is_multiple(wrong: WrongValue, factor: float) -> bool:
    if wrong.tensors is None or wrong.doubles is None or wrong.case.world_size == 1:
        return False
    expected, returned = wrong.doubles
    if same(expected * factor, returned, 1e-4):
        return True
    # the mean of whole numbers is rounded
    is_whole = not wrong.tensors[0].is_floating_point()
    is_near = bool(((expected * factor - returned).abs() <= 1).all())
    return is_whole and bool(returned.abs().max() > 8) and is_near


def _has_other_sign(wrong: WrongValue) -> bool:
    if wrong.doubles is None:
        return False
    expected, returned = wrong.doubles
    return bool(expected.abs().sum() > 0) and same(-expected, returned, 1e-6)


def _is_reversed(wrong: WrongValue) -> bool:
    if wrong.doubles is None:
        return False
    expected, returned = wrong.doubles
    return (
        expected.numel() > 1
        and expected.dim() > 0
        and same(expected.flatten().flip(0), returned.flatten(), 0)
    )


def _is_reordered(wrong: WrongValue) -> bool:
    if wrong.doubles is None:
        return False
    expected, returned = wrong.doubles
    return expected.numel() > 1 and same(
        expected.flatten().sort().values, returned.flatten().sort().values, 0
    )


_WRONG_ORDER_ADVICE = "The elements are right, but in the wrong order."
RELATIONS = (
    Relation(
        "argument",
        _is_argument,
        "This is the rank's argument, unchanged. Return what was received or computed.",
    ),
    Relation("nothing", _is_nothing, "This rank returned None. Does every path have a `return`?"),
    Relation(
        "value of a different rank",
        _is_value_of_other,
        "This is the right value of a different rank. Which rank are you reading from?",
    ),
    Relation(
        "result of wait",
        _is_result_of_wait,
        "This is what `wait()` returns; the data is in the tensor that you passed to the call.",
    ),
    Relation(
        "list instead of a tensor",
        _is_list_of_values,
        "The values are right, but they are not in a tensor. Return a tensor.",
    ),
    Relation("list in a different order", _is_reordered_list, _WRONG_ORDER_ADVICE),
    Relation("dtype", _differs_in_dtype, "The numbers are right, but the dtype is wrong."),
    Relation(
        "rounded to float32",
        _is_rounded_to_float32,
        "This is the right value rounded to float32. Keep the dtype of the arguments.",
    ),
    Relation(
        "precision of float32",
        _agrees_to_float32,
        "This agrees with the right value to about 7 digits, the precision of float32.",
    ),
    Relation(
        "too large",
        _is_too_large,
        "This is {n} times too large: is a division by the world size missing?",
        asks_for_factor=True,
    ),
    Relation(
        "too small",
        _is_too_small,
        "This is {n} times too small: is it divided by the world size once too often?",
        asks_for_factor=True,
    ),
    Relation("sign", _has_other_sign, "The sign is wrong."),
    Relation("reversed", _is_reversed, "These are the right elements in reverse order."),
    Relation("different order", _is_reordered, _WRONG_ORDER_ADVICE),
)
"""The relations in the order in which they are tried. The first that explains all wrong ranks is shown."""
_FACTOR_WORDS = frozenset(relation.words for relation in RELATIONS if relation.asks_for_factor)


def find_relations(wrong: WrongValue) -> Iterator[Relation]:
    """Yield the relations of a wrong value to the right one, in the order of the table."""
    if callable(wrong.right) or isinstance(wrong.right, AllRanks):
        return
    yield from (relation for relation in RELATIONS if relation.applies(wrong))


def advise(
    executions: Sequence[Execution],
    passed_cases: Sequence[Execution] = (),
    shape: AnswerShape = NO_SHAPE,
) -> str:
    """Return the first sentence that explains every wrong rank of every wrong case, or "".

    passed_cases: passed cases, which must still be right with the factor in a sentence. shape: the answer's
    shape. Advice on a missing value is given only if there is a path without a `return`, or if the result of
    a call to torch.distributed is returned, because None is the right value of some cases.
    """
    wrong = [
        (execution, rank, finding)
        for execution in executions
        if execution.run.failure is None
        for rank, finding in [
            *enumerate(execution.all_findings()),
            (execution.case.world_size - 1, execution.joint_finding()),
        ]
        if finding is not None
    ]
    if not wrong:
        return ""
    returned = [value for execution, *_ in wrong for value in execution.run.values]
    if shape.returned_call and all(value is None for value in returned):
        return _RESULT_OF_CALL_ADVICE.format(call=shape.returned_call)
    returned += [value for execution in passed_cases for value in execution.run.values]
    if shape.may_return_nothing and all(value is None for value in returned):
        return PRINTED_ONLY_ADVICE if any(executions[0].run.output) else NOTHING_RETURNED_ADVICE
    # a sentence that explains only some of the wrong ranks is at best half of the explanation
    first, *others = wrong
    for words in _explain_value(*first, shape):
        if all(
            words in _explain_value(*other, shape) for other in others
        ) and not _is_factor_refuted(words, passed_cases):
            return first[0].case.fill_facts(words)
    return ""


def _is_factor_refuted(sentence: str, passed_cases: Sequence[Execution]) -> bool:
    """Return whether a sentence's factor would make a right result wrong."""
    return sentence in _FACTOR_WORDS and any(
        _has_nonzero(value)
        for execution in passed_cases
        if execution.case.world_size > 1
        for value in execution.run.values
    )


def _has_nonzero(value: Any) -> bool:
    try:
        return bool(torch.as_tensor(value).any())
    except Exception:  # a hostile value, or one that cannot be multiplied
        return False


def _explain_value(
    execution: Execution, rank: int, finding: Finding, shape: AnswerShape
) -> list[str]:
    """Return all sentences that explain one rank's value, starting with the exercise's sentences."""
    advice = (finding.advice,) if isinstance(finding.advice, str) else finding.advice
    words = [*filter(None, advice)]
    # a hostile value may raise an error on any access, in which case there is no advice
    with contextlib.suppress(Exception):
        wrong = WrongValue(execution.case, rank, execution.run.values[rank], shape)
        for relation in find_relations(wrong):
            words.append(relation.words)
    return words
