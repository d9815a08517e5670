"""Compute the number of bytes that a rank sends in one call: `Event -> float`."""

from __future__ import annotations

from helpers.trace.events import Event


def bytes_sent(event: Event) -> float:
    """Return the number of bytes that a rank sends over the network in a call.

    For a collective, the result is the minimum in a group of p ranks. Around a ring, an all_reduce sends 2(p
    - 1)/p times the tensor, a reduce_scatter or all_to_all sends it (p - 1)/p times, and an all_gather p - 1
    times. The root of a broadcast sends its tensor once, and the root of a scatter sends all parts except its
    own. In a gather or reduce, every rank except the root sends its tensor once.
    """
    p = len(event.group_ranks)
    if event.is_collective and p < 2:
        return 0.0
    is_root = event.rank == event.root
    times = {
        "span": 0,
        "recv": 0,
        "barrier": 0,
        "all_reduce": 2 * (p - 1) / p,
        "reduce_scatter": (p - 1) / p,
        "all_to_all": (p - 1) / p,
        "all_gather": p - 1,
        "gather": 1 - is_root,
        "reduce": 1 - is_root,
        "scatter": is_root * (p - 1) / p,
        "broadcast": is_root,
    }
    return times.get(event.op, 1) * event.nbytes
