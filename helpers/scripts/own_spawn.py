"""Make a script's `mp.spawn` use the running ranks instead of starting processes.

    mp.spawn(work, args=(4,), nprocs=4)   on each of 4 ranks:  work(rank, 4)

Afterwards only rank 0 continues, because under plain Python a single process called `mp.spawn`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from helpers.trace.frames import learner_frame


class StartsProcesses(Exception):
    """A script starts processes in a way that ranks cannot replace."""


class _Joined:
    """The result of `mp.spawn(..., join=False)`, whose processes have already ended."""

    processes: tuple[Any, ...] = ()

    def join(self, *_: Any, **__: Any) -> bool:
        return True


def install(rank: int, world_size: int, script: str) -> None:
    """Replace `torch.multiprocessing.spawn` and `start_processes` in this rank."""
    import torch.multiprocessing as mp

    def spawn(
        fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        nprocs: int = 1,
        join: bool = True,
        daemon: bool = False,
        start_method: str = "spawn",
        **_: Any,
    ) -> Any:
        frame = learner_frame(sys._getframe(1))
        line = f" (line {frame.f_lineno})" if frame is not None else ""
        if nprocs != world_size:
            raise StartsProcesses(
                f"{script} starts {nprocs} processes with mp.spawn{line}. Run it with --ranks {nprocs}: the "
                f"ranks then take the place of these processes."
            )
        refuse_shared_objects(script, args, f"the processes of mp.spawn{line}")
        fn(rank, *args)
        if rank != 0:
            raise SystemExit(0)
        return None if join else _Joined()

    vars(mp).update(spawn=spawn, start_processes=spawn)


def refuse_shared_objects(script: str, args: tuple[Any, ...], receivers: str) -> None:
    """Raise StartsProcesses for an object that is shared only if one process creates it for the others."""
    for value in args:
        if type(value).__module__.startswith("multiprocessing."):
            raise StartsProcesses(
                f"{script} passes a {type(value).__name__} to {receivers}, but each rank would make its own. "
                "Let torch.distributed carry the data, or run the script with plain python."
            )
