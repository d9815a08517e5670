"""Tensors to sum, and advice on deadlocks and failures, for exercises of notebook 05."""

from __future__ import annotations

from typing import Any

import torch

from helpers.checks.author import *
from helpers.checks.rules import Case as RuleCase
from helpers.ranks.failures import Deadlock

P2P_ONLY = OnlyCalls(("send", "recv"))


def draw_terms(draw: Draw) -> list[torch.Tensor]:
    """Draw each rank's 1-D tensor. Sums neither overflow nor lose digits, unless summed in float32."""
    return draw.tensors((draw.length(least=1),), draw.dtype(*SUMMED))


def doubling_steps(case: RuleCase) -> int:
    """Return log2 of the largest power of two that is at most the world size."""
    return int(case.world_size).bit_length() - 1


def extra_ranks(case: RuleCase) -> int:
    """Return the number of ranks beyond the largest power of two."""
    return int(case.world_size - 2 ** doubling_steps(case))


def _has_self_message(case: Case, run: Run) -> bool:
    return any(event.peer == event.rank for event in run.trace.calls)


def _all_ranks_send(case: Case, run: Run) -> bool:
    failure = run.failure
    calls = [wait.call for wait in failure.waits] if isinstance(failure, Deadlock) else []
    return "send" in calls and "recv" not in calls


SELF_MESSAGE_ADVICE = (
    "A rank sends to itself or receives from itself. Check how you compute its peer. If you count ranks "
    "from the root, add the root again, modulo world_size. A rank needs no message for data that it "
    "already has."
)
FAILURE_ADVICE: tuple[Any, ...] = (
    CrashAdvice("should not be the same as the rank of the current process", SELF_MESSAGE_ADVICE),
    CrashAdvice(".", SELF_MESSAGE_ADVICE, when=_has_self_message),
    HangAdvice(SELF_MESSAGE_ADVICE, when=_has_self_message),
)
"""The advice in `Exercise.failed` of all these exercises."""
SEND_FIRST_ADVICE: Any = HangAdvice(
    "All ranks send first, and each `send` waits for a `recv`. To use both directions in one round, start "
    "with `isend`, then receive, and then `wait()` for your send.",
    ("cycle",),
    _all_ranks_send,
)
