"""What is wrong with a bubble's fraction that an answer gave, in words."""

from __future__ import annotations

import torch

from helpers.exercises.model import Case
from helpers.ranks.run import Run


def look_at_bubble(case: Case, run: Run) -> str:
    """Say what a bubble's fraction mostly gets wrong."""
    if run.failure is not None:
        return "A stage may have no spans: take min() and max() over all spans of all stages."
    if case.expected is None or run.values[0] is None:
        return ""
    got, right = run.values[0], case.expected[0]
    got = got.item() if isinstance(got, torch.Tensor) and got.numel() == 1 else got
    if not isinstance(got, int | float):
        return "One number is wanted, for all stages together."
    for value, words in (
        (100 * right, "A fraction is wanted, between 0 and 1, not per cent."),
        (1 - right, "This is the share in which the stages work: subtract it from 1."),
        (right / (1 - right), "This is idle time by busy time. Divide by all time, idle and busy."),
    ):
        if right and abs(got - value) < 1e-6:
            return words
    p, m = len(case.inputs[0][0]), len(case.inputs[0][0][0]) // 2
    if m and abs(got - (p - 1) / (m + p - 1)) < 1e-6:
        return (
            "The formula is for equal stages without pauses. Here measure: add up the spans given."
        )
    return (
        "All stages count, also one without spans, and all for the same time: from the first start to "
        "the last end over all spans, in whatever order they come. Only the spans' lengths count as work."
    )
