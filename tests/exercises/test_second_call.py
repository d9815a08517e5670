"""Reject answers that are right only in the first call in a process."""

from __future__ import annotations

import pytest

from helpers.answers.build import cell_number
from helpers.answers.data import Answer, Origin
from helpers.check_result import Outcome
from helpers.checks.answer_file import IMPORTS
from helpers.checks.check_answer import grade
from helpers.checks.registry import get
from helpers.checks.second_call import SECOND_CALL_ADVICE

DEFAULT_ARGUMENT = """
def count_votes(rank, world_size, votes, is_valid, seen=[]):
    seen.append(votes if is_valid else 0)
    total = torch.tensor(sum(seen))
    dist.all_reduce(total)
    return total.item()
"""
GLOBAL_TENSOR = """
counted = torch.zeros(1, dtype=torch.int64)

def count_votes(rank, world_size, votes, is_valid):
    counted.add_(votes if is_valid else 0)
    dist.all_reduce(counted)
    return counted.item()
"""
ERROR_IN_LATER_CALLS = """
def gather_in_order(rank, world_size, predictions, total, dst, parts=[]):
    if rank == dst:
        parts += [torch.empty_like(predictions) for _ in range(world_size)]
    dist.gather(predictions, parts if rank == dst else None, dst=dst)
    return torch.stack(parts, 1).flatten()[:total] if rank == dst else None
"""
DEADLOCK_IN_LATER_CALLS = """
def broadcast_from(rank, world_size, x, shape, dtype, src, done=[]):
    x = torch.empty(shape, dtype=dtype) if x is None else x
    if not (done and rank == 0):
        dist.broadcast(x, src)
    done.append(rank)
    return x
"""


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "program", "outcome"),
    [
        pytest.param("count_votes", DEFAULT_ARGUMENT, Outcome.WRONG, id="default argument"),
        pytest.param("count_votes", GLOBAL_TENSOR, Outcome.WRONG, id="global tensor"),
        pytest.param("gather_in_order", ERROR_IN_LATER_CALLS, Outcome.CRASHED, id="error"),
        pytest.param("broadcast_from", DEADLOCK_IN_LATER_CALLS, Outcome.DEADLOCKED, id="deadlock"),
    ],
)
def test_advises_on_state_between_calls(name: str, program: str, outcome: Outcome) -> None:
    result = grade(get(name), _as_answer(name, program), cell_number, every_case=False)
    assert result.outcome is outcome
    failed = next(case for case in result.cases if not case.passed)
    assert failed.advice == SECOND_CALL_ADVICE


@pytest.mark.extended
@pytest.mark.parametrize(("name", "program"), [("count_votes", DEFAULT_ARGUMENT)])
def test_rejects_state_in_hidden_cases(name: str, program: str) -> None:
    assert not grade(get(name), _as_answer(name, program), cell_number, "hidden").passed


def _as_answer(name: str, program: str) -> Answer:
    source = IMPORTS + program
    return Answer(name, source, (Origin(1, source.count("\n") + 1, 0, 1),))
