"""Run the cases of an exercise of notebook 02 strictly one after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch.distributed.distributed_c10d import _get_default_store

START_DELAY_S = 0.001


def run_after_previous_case(
    answer: Callable[..., Any], rank: int, world_size: int, *args: Any
) -> Any:
    """Call the answer once all ranks have finished the previous case; higher ranks start first.

    Otherwise a receive from any rank could match a faster rank's message of the next case. Ranks synchronize
    through the group's store, which leaves no event in the trace.
    """
    store = _get_default_store()
    arrived = store.add("arrived", 1)
    meeting = f"met {(arrived - 1) // world_size}"
    if arrived % world_size == 0:
        store.set(meeting, "")
    store.wait([meeting])
    time.sleep(START_DELAY_S * (world_size - 1 - rank))
    return answer(rank, world_size, *args)
