"""Run answers of 22.1: one rank starts mpiexec, and `reduce_all` runs on MPI's ranks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import equal

from helpers.checks.scripts import ROOT, Source, compose, is_late, report
from helpers.jobs.mpiexec import run_mpiexec

MPIEXEC_S = 25.0
"""Time limit for the ranks. They usually need 2 s, but thirty learners may share the machine."""
_ANSWER_S = 5.0
"""Time limit for the answer once all ranks have started. It needs milliseconds; ranks that hang spin."""
_PICKLES = ["allreduce", "reduce", "bcast", "gather", "allgather", "scatter", "alltoall", "scan"]
_PICKLES += ["send", "recv", "isend", "irecv"]
_BUFFERS = [name.capitalize() for name in _PICKLES] + ["Iallreduce", "Ireduce", "Ibcast"]
"""Names of MPI calls: lowercase ones pickle objects, capitalized ones send memory."""


def on_mpi_ranks(
    answer: Source,
    rank: int,
    world_size: int,
    n: int,
    given: Sequence[Sequence[torch.Tensor]],
    ops: Sequence[str],
    strides: Sequence[int],
    colors: Sequence[Sequence[int]],
) -> dict[str, Any]:
    """Run the answer on `n` MPI ranks, on every row of `given` (one tensor for each rank).

    strides: each row takes every n-th element of a longer tensor, n in `strides`. colors: ranks of one
    color reduce a row among themselves.
    """
    inputs = ([list(row) for row in given], list(ops), list(strides), [list(c) for c in colors])
    script = compose(answer, reduce_all, inputs)
    found = under_mpiexec(script, n, timeout_s=MPIEXEC_S)
    for place in script.parent.glob("*.inside"):
        found["values"][int(place.stem)] = {"waits_in": place.read_text(encoding="utf-8")}
        found |= {"late": True, "seconds": _ANSWER_S}
    return found


def under_mpiexec(script: Path, n: int, timeout_s: float) -> dict[str, Any]:
    """Run a composed script on `n` MPI ranks and return its report.

    The worker calls `MPI.Finalize()` once its report is written. An exception in one rank ends all of them
    (`python -m mpi4py`).
    """
    run = run_mpiexec(script, n, module="mpi4py", env={"PYTHONPATH": ROOT}, timeout=timeout_s)
    return report(script.parent, n, {"late": is_late(run.failure), "exits": {}}, run.output)


def reduce_all(
    answer: Callable[..., Any],
    given: Sequence[Sequence[torch.Tensor]],
    ops: Sequence[str],
    strides: Sequence[int],
    colors: Sequence[Sequence[int]],
) -> list[dict[str, Any]]:
    """Call the answer to reduce each tensor in place; return the tensors and the names of the calls."""
    from mpi4py import MPI

    me, inside = MPI.COMM_WORLD.Get_rank(), [""]
    found = []
    MPI.COMM_WORLD.Barrier()  # measure from the moment when all ranks have started
    watch = threading.Timer(_ANSWER_S, _give_up, [Path(f"{me}.inside").absolute(), inside])
    watch.daemon = True
    watch.start()
    for row, op, stride, color in zip(given, ops, strides, colors, strict=True):
        world = counting(MPI.COMM_WORLD.Split(color[me], me), inside)
        mine = row[me]
        # a view whose elements are not next to each other; the elements in between must not change
        longer = torch.stack([mine] * stride, -1).flatten(-2)
        x, between = longer[..., ::stride], [longer[..., k::stride] for k in range(1, stride)]
        try:
            returned = answer(world, x, op)
        except Exception as error:
            raise error.with_traceback(_python_only(error.__traceback__)) from None
        kept = all(equal(part, mine) for part in between)
        told = {"x": x.clone(), "calls": world.calls, "returned": returned is not None}
        found.append({**told, "kept": kept})
    watch.cancel()
    return found


def _give_up(place: Path, inside: list[str]) -> None:
    """Write down which call this rank is in, wait for the others to do so, and end the job."""
    place.write_text(inside[-1], encoding="utf-8")
    time.sleep(0.5)
    os._exit(1)


def _python_only(trace: TracebackType | None) -> TracebackType | None:
    """Leave out mpi4py's own frames: eight of them would hide the learner's lines."""
    while trace is not None and trace.tb_frame.f_code.co_filename.endswith((".pxi", ".pyx")):
        trace = trace.tb_next
    if trace is not None:
        trace.tb_next = _python_only(trace.tb_next)
    return trace


def counting(world: Any, inside: list[str]) -> Any:
    """Return a communicator like `world` that records the names of the calls made on it, in `calls`.

    inside: if a call has begun and not ended, its last element is the call's name.
    """

    def counted(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            inside.append(name)
            try:
                return getattr(super(kind, self), name)(*args, **kwargs)
            finally:
                inside.pop()

        return call

    kind: Any = type(
        "Intracomm", (type(world),), {name: counted(name) for name in (*_BUFFERS, *_PICKLES)}
    )
    made = kind(world)
    made.calls = []
    return made
