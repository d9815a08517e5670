"""Each relation of a wrong value to the right one is the first that applies in some example."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from helpers.checks.answer_shape import NO_SHAPE, AnswerShape
from helpers.checks.case import Case, PerRank
from helpers.checks.relations import RELATIONS, WrongValue, find_relations

X = torch.tensor([1.0, -2.0, 4.0])
D = torch.tensor([0.1, 0.7, 0.3], dtype=torch.float64)
EXAMPLES: dict[str, tuple[Any, Any]] = {
    "argument": (X + 1, torch.ones(3)),
    "nothing": (X, None),
    "value of a different rank": (PerRank([X, X + 9]), X + 9),
    "result of wait": (X, True),
    "list instead of a tensor": (X, X.tolist()),
    "list in a different order": ([1, 2, 3], [3, 1, 2]),
    "dtype": (X, X.double()),
    "rounded to float32": (D, D.float().double()),
    "precision of float32": (D, D * (1 + 3e-7)),
    "too large": (X, 2 * X),
    "too small": (X, X / 2),
    "sign": (X, -X),
    "reversed": (X, X.flip(0)),
    "different order": (X, X[[1, 0, 2]]),
}


def wrong_value(right: Any, got: Any) -> WrongValue:
    case = Case("a case", [(torch.ones(3),)] * 2, right)
    shape = AnswerShape(may_return_nothing=True) if got is None else NO_SHAPE
    return WrongValue(case, 0, got, shape)


def test_examples_cover_every_relation() -> None:
    assert [relation.name for relation in RELATIONS] == [*EXAMPLES]


@pytest.mark.parametrize("name", EXAMPLES)
def test_first_matching_relation_is_expected(name: str) -> None:
    first = next(find_relations(wrong_value(*EXAMPLES[name])))
    assert first.name == name


def test_unrelated_values_have_no_relation() -> None:
    assert not [*find_relations(wrong_value(X, X + 0.3))]
    assert not [*find_relations(wrong_value(lambda got, rank: None, X))]
