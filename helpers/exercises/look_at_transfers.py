"""The first thing to look at when an answer to an exercise of notebook 03 is wrong.

`nb03_nonblocking_p2p` names these functions; `judge` calls them with a case and its run.
"""

from __future__ import annotations

from typing import Any

import torch

from helpers.exercises.look_at_rod import look_at_rod
from helpers.exercises.model import Case
from helpers.exercises.rules_transfers import named
from helpers.ranks.failures import Deadlock, RankTimeout
from helpers.ranks.run import Run
from helpers.trace.mismatch import at


def look_at_transfers(case: Case, run: Run) -> str:
    """Tell of a buffer that was read too early, or of a transfer that nobody waited for."""
    if run.failure is None and any(_has_nonsense(value) for value in run.values):
        return (
            "A receive buffer was read before wait(). Nobody may rely on what is in it until then, so "
            "the check puts NaN there, or the largest integer."
        )
    if isinstance(run.failure, Deadlock) and run.failure.diagnosis.kind == "cycle":
        return (
            "Here nobody has to go first: isend and irecv return at once. Issue all transfers, and "
            "only then wait for the first of them."
        )
    if isinstance(run.failure, RankTimeout):
        for event in run.trace.calls:
            if event.asynchronous and event.wait_ns is None and event.end_ns is None:
                return (
                    f"Rank {event.rank} never waits for its {named(event)}{at(event)}. Under gloo only "
                    "wait() ends a transfer; is_completed() stays False until then."
                )
    return ""


def _has_nonsense(value: object) -> bool:
    if not isinstance(value, torch.Tensor) or not value.numel():
        return False
    if value.is_floating_point():
        return bool(value.isnan().any())
    return not value.is_complex() and value.dtype is torch.int64 and bool(value.abs().max() > 2**62)


def look_at_swap(case: Case, run: Run) -> str:
    """Name the rank in the middle that talks to itself, or what `look_at_transfers` finds."""
    middle = case.world_size // 2
    if run.failure is not None and case.world_size % 2:
        calls = run.trace.of(middle)
        if any(event.peer == middle for event in calls):
            return f"Rank {middle} is its own partner: it returns x and does not communicate."
    return look_at_transfers(case, run)


def look_at_buffers(case: Case, run: Run) -> str:
    """Say which message was overwritten, is missing, or took a buffer too many."""
    if run.failure is not None:
        return look_at_transfers(case, run)
    dst = case.inputs[0][0]
    for rank, value in enumerate(run.values):
        if rank != dst and (problem := two_buffers(value)):
            return (
                f"Rank {rank}: {problem}. What counts is each tensor that is filled or sent, a clone as "
                "well. Make two before the loop and take them in turn, `i % 2`."
            )
    taken = run.values[dst]
    for src, wanted in enumerate(messages for _, messages in case.inputs):
        got = taken.get(src) if isinstance(taken, dict) else None
        if src == dst or not isinstance(got, torch.Tensor):
            continue
        if len(got) < len(wanted):
            return f"Rank {src} sends {len(got)} messages of {len(wanted)}."
        for index, row in enumerate(got):
            later = [j for j in range(index + 1, len(wanted)) if torch.equal(row, wanted[j])]
            if later and not torch.equal(row, wanted[index]):
                return (
                    f"What came as message {index} of rank {src} is message {later[0]}: its buffer "
                    "was filled again before wait()."
                )
    return ""


def look_at_halo(case: Case, run: Run) -> str:
    """Name the usual mistake that gives this rod."""
    if reason := look_at_transfers(case, run):
        return reason
    return look_at_rod(case.inputs, run.values) if run.failure is None else ""


def look_at_shift(case: Case, run: Run) -> str:
    """Name a shift that moves nothing, or what `look_at_transfers` finds."""
    if reason := look_at_transfers(case, run):
        return reason
    by = case.inputs[0][1]
    if run.failure is not None and by % case.world_size == 0:
        return f"A shift by {by} among {case.world_size} ranks moves nothing: return x at once."
    return ""


def two_buffers(got: Any) -> str:
    """Give "" if a sender used one or two buffers, else what is wrong."""
    used = got.get("buffers") if isinstance(got, dict) else got
    if used == 0:
        return "fill() was never called"
    return "" if used in {1, 2} else f"{used} buffers; two are enough"
