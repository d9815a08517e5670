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
"""Time limit for the answer once all ranks have started. It needs milliseconds, but hanging ranks spin."""
_PICKLE_CALLS = [
    "allreduce",
    "reduce",
    "bcast",
    "gather",
    "allgather",
    "scatter",
    "alltoall",
    "scan",
]
_PICKLE_CALLS += ["send", "recv", "isend", "irecv"]
_BUFFER_CALLS = [name.capitalize() for name in _PICKLE_CALLS] + ["Iallreduce", "Ireduce", "Ibcast"]
"""Names of MPI calls. Calls with lowercase names pickle objects, and the others send memory."""


def run_on_mpi_ranks(
    answer: Source,
    rank: int,
    world_size: int,
    n: int,
    rows: Sequence[Sequence[torch.Tensor]],
    ops: Sequence[str],
    strides: Sequence[int],
    colors: Sequence[Sequence[int]],
) -> dict[str, Any]:
    """Run the answer on `n` MPI ranks, on every row of `rows` (one tensor for each rank).

    strides: for each row, a number n; the row consists of every n-th element of a longer tensor. colors:
    ranks of the same color reduce a row among themselves.
    """
    inputs = ([list(row) for row in rows], list(ops), list(strides), [list(c) for c in colors])
    script = compose(answer, reduce_all, inputs)
    found = run_under_mpiexec(script, n, timeout_s=MPIEXEC_S)
    for place in script.parent.glob("*.inside"):
        found["values"][int(place.stem)] = {"waits_in": place.read_text(encoding="utf-8")}
        found |= {"late": True, "seconds": _ANSWER_S}
    return found


def run_under_mpiexec(script: Path, n: int, timeout_s: float) -> dict[str, Any]:
    """Run a composed script on `n` MPI ranks and return its report.

    The worker calls `MPI.Finalize()` once its report is written. An exception in one rank ends all ranks
    (`python -m mpi4py`).
    """
    run = run_mpiexec(script, n, module="mpi4py", env={"PYTHONPATH": ROOT}, timeout=timeout_s)
    return report(script.parent, n, {"late": is_late(run.failure), "exits": {}}, run.output)


def reduce_all(
    answer: Callable[..., Any],
    rows: Sequence[Sequence[torch.Tensor]],
    ops: Sequence[str],
    strides: Sequence[int],
    colors: Sequence[Sequence[int]],
) -> list[dict[str, Any]]:
    """Call the answer to reduce each tensor in place; return the tensors and the names of the calls."""
    from mpi4py import MPI

    me, current_calls = MPI.COMM_WORLD.Get_rank(), [""]
    found = []
    MPI.COMM_WORLD.Barrier()  # measure from the moment when all ranks have started
    watch = threading.Timer(_ANSWER_S, _abort_job, [Path(f"{me}.inside").absolute(), current_calls])
    watch.daemon = True
    watch.start()
    for row, op, stride, color in zip(rows, ops, strides, colors, strict=True):
        world = recording_world(MPI.COMM_WORLD.Split(color[me], me), current_calls)
        mine = row[me]
        # a view whose elements are not next to each other; the elements in between must not change
        longer = torch.stack([mine] * stride, -1).flatten(-2)
        x, between = longer[..., ::stride], [longer[..., k::stride] for k in range(1, stride)]
        try:
            returned = answer(world, x, op)
        except Exception as error:
            raise error.with_traceback(_without_mpi_frames(error.__traceback__)) from None
        kept = all(equal(part, mine) for part in between)
        told = {"x": x.clone(), "calls": world.calls, "returned": returned is not None}
        found.append({**told, "kept": kept})
    watch.cancel()
    return found


def _abort_job(path: Path, current_calls: list[str]) -> None:
    """Write this rank's current call to a file, wait until the other ranks have done so, and end the job."""
    path.write_text(current_calls[-1], encoding="utf-8")
    time.sleep(0.5)
    os._exit(1)


def _without_mpi_frames(trace: TracebackType | None) -> TracebackType | None:
    """Leave out mpi4py's frames, because eight of them would hide the learner's lines."""
    while trace is not None and trace.tb_frame.f_code.co_filename.endswith((".pxi", ".pyx")):
        trace = trace.tb_next
    if trace is not None:
        trace.tb_next = _without_mpi_frames(trace.tb_next)
    return trace


def recording_world(world: Any, current_calls: list[str]) -> Any:
    """Return a communicator like `world` that records, in `calls`, the names of the calls made on it.

    current_calls: if a call has begun but not ended, its name is the last element.
    """

    def record_call(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            current_calls.append(name)
            try:
                return getattr(super(kind, self), name)(*args, **kwargs)
            finally:
                current_calls.pop()

        return call

    kind: Any = type(
        "Intracomm",
        (type(world),),
        {name: record_call(name) for name in (*_BUFFER_CALLS, *_PICKLE_CALLS)},
    )
    made = kind(world)
    made.calls = []
    return made
