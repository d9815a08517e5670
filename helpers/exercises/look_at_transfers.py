"""The first thing to look at when an answer to an exercise of notebook 03 is wrong.

`nb03_nonblocking_p2p` names these functions; `judge` calls them with a case and its run.
"""

from __future__ import annotations

from typing import Any

import torch

from helpers.exercises.look_at_rod import look_at_rod
from helpers.exercises.look_at_time import look_at_time
from helpers.exercises.model import Case
from helpers.ranks.failures import Deadlock, RankFailed
from helpers.ranks.run import Run


def look_at_transfers(case: Case, run: Run) -> str:
    """Tell of a buffer that was read too early, or of a transfer that nobody waited for."""
    if run.failure is None and any(_has_nonsense(value) for value in run.values):
        return (
            "A receive buffer was read before wait(). Nobody may rely on what is in it until then, so "
            "the check puts NaN there, or the largest integer."
        )
    if isinstance(run.failure, Deadlock) and run.failure.diagnosis.kind == "cycle":
        return (
            "With isend and irecv no rank has to receive first, as they return at once: issue all "
            "transfers, and only then wait for the first of them."
        )
    return look_at_time(run)


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
    for event in run.trace.calls:
        partner = case.world_size - 1 - event.rank
        if event.peer != partner:
            return (
                f"Rank {event.rank} of {case.world_size} talks to rank {event.peer}; its mirror image "
                f"is rank {partner}: as far from the last rank as it is from the first."
            )
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
    said = run.failure.error.message if isinstance(run.failure, RankFailed) else ""
    if "P2POp" in said or "Invalid ``op``" in said:
        return (
            "P2POp takes the function itself and calls it later: dist.P2POp(dist.isend, x, peer), "
            "without parentheses after isend; isend or irecv, not send or recv."
        )
    by = case.inputs[0][1]
    if run.failure is not None and by % case.world_size == 0:
        return f"A shift by {by} among {case.world_size} ranks moves nothing: return x at once."
    return ""


def look_at_overlap(case: Case, run: Run) -> str:
    """Name a result that the message has overwritten, or what `look_at_transfers` finds."""
    if reason := look_at_transfers(case, run):
        return reason
    for rank, got in enumerate(run.values) if run.failure is None else ():
        came, own = case.inputs[rank - 1][0], case.inputs[rank][1]
        if not isinstance(got, torch.Tensor):
            continue
        if torch.equal(got, came):
            return (
                f"Rank {rank} returns only what it received. What was written into the receive buffer "
                "before wait() was overwritten by the message: add up after the wait."
            )
        if torch.equal(got, own):
            return f"Rank {rank} returns only what compute() gave: add the received tensor to it."
        if torch.equal(got, own + 1):
            return "wait() returns True, which counts as 1; the data is in the tensor for irecv."
    return ""


def two_buffers(got: Any) -> str:
    """Give "" if a sender used one or two buffers, else what is wrong."""
    used = got.get("buffers") if isinstance(got, dict) else got
    if used == 0:
        return "fill() was never called"
    return "" if used in {1, 2} else f"{used} buffers; two are enough"
