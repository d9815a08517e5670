"""What runs around an answer of 22.1: one rank starts mpiexec, and `reduce_all` runs on MPI's ranks."""

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
"""How long the ranks may take: 2 s are usual, but thirty learners may share the machine."""
_ANSWER_S = 5.0
"""How long the answer may take once all ranks are there. It needs milliseconds; ranks that hang spin."""
_PICKLES = ["allreduce", "reduce", "bcast", "gather", "allgather", "scatter", "alltoall", "scan"]
_PICKLES += ["send", "recv", "isend", "irecv"]
_BUFFERS = [name.capitalize() for name in _PICKLES] + ["Iallreduce", "Ireduce", "Ibcast"]
"""MPI's names of calls: in small letters they pickle, with a capital they send memory."""


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
    """Run the answer on `n` MPI ranks, on every row of `given` (a tensor for each rank).

    strides: each row takes every n-th element of a longer tensor, n in `strides`. colors: ranks of one color
    reduce a row among themselves.
    """
    inputs = ([list(row) for row in given], list(ops), list(strides), [list(c) for c in colors])
    script = compose(answer, reduce_all, inputs)
    found = under_mpiexec(script, n, timeout_s=MPIEXEC_S)
    for place in script.parent.glob("*.inside"):
        found["values"][int(place.stem)] = {"waits_in": place.read_text(encoding="utf-8")}
        found |= {"late": True, "seconds": _ANSWER_S}
    return found


def under_mpiexec(script: Path, n: int, timeout_s: float) -> dict[str, Any]:
    """Run a composed script on `n` MPI ranks and give its report.

    The worker calls `MPI.Finalize()` once its report is written; an exception in one rank ends all
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
    """Reduce each tensor in place by the answer; say what became of it and which calls were made."""
    from mpi4py import MPI

    me, inside = MPI.COMM_WORLD.Get_rank(), [""]
    found = []
    MPI.COMM_WORLD.Barrier()  # the time runs from when all are there
    watch = threading.Timer(_ANSWER_S, _give_up, [Path(f"{me}.inside").absolute(), inside])
    watch.daemon = True
    watch.start()
    for row, op, stride, color in zip(given, ops, strides, colors, strict=True):
        world = counting(MPI.COMM_WORLD.Split(color[me], me), inside)
        mine = row[me]
        # a view whose elements are not next to each other; those between belong to somebody else
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
    """Write down in which call this rank is, give the others time to do so too, and end the job."""
    place.write_text(inside[-1], encoding="utf-8")
    time.sleep(0.5)
    os._exit(1)


def _python_only(trace: TracebackType | None) -> TracebackType | None:
    """Leave mpi4py's own lines out, eight of which would hide the learner's."""
    while trace is not None and trace.tb_frame.f_code.co_filename.endswith((".pxi", ".pyx")):
        trace = trace.tb_next
    if trace is not None:
        trace.tb_next = _python_only(trace.tb_next)
    return trace


def counting(world: Any, inside: list[str]) -> Any:
    """Give a communicator like `world` that keeps the names of the calls made on it, in `calls`.

    inside: ends with the name of the call that has begun and not ended yet, if there is one.
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
