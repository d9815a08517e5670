"""What real MPI ranks run around `mpi_all_reduce`: a communicator that keeps count, tensors, ops.

`on_mpi_ranks` is called in the one rank that starts mpiexec, `reduce_all` on each MPI rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from helpers.exercises.script_mpi import under_mpiexec
from helpers.exercises.scripts import Source, compose

MPIEXEC_S = 25.0
"""How long the ranks may take: 2 s are usual, but thirty learners may share the machine."""
_BUFFERS = (
    "Allreduce",
    "Iallreduce",
    "Reduce",
    "Ireduce",
    "Bcast",
    "Ibcast",
    "Gather",
    "Allgather",
    "Scatter",
    "Alltoall",
    "Send",
    "Recv",
    "Isend",
    "Irecv",
    "Scan",
)
_PICKLES = (
    "allreduce",
    "reduce",
    "bcast",
    "gather",
    "allgather",
    "scatter",
    "alltoall",
    "send",
    "recv",
    "isend",
    "irecv",
    "scan",
)


def on_mpi_ranks(
    answer: Source,
    rank: int,
    world_size: int,
    n: int,
    given: Sequence[Sequence[torch.Tensor]],
    ops: Sequence[str],
    strides: Sequence[int],
    colours: Sequence[Sequence[int]],
) -> dict[str, Any]:
    """Run the answer on `n` MPI ranks, on every row of `given` (a tensor for each rank).

    strides: each row's tensors are every so many elements of longer ones. colours: ranks of one colour
    reduce a row among themselves.
    """
    inputs = ([list(row) for row in given], list(ops), list(strides), [list(c) for c in colours])
    script = compose(answer, f"{__name__}:reduce_all", inputs)
    return under_mpiexec(script, n, timeout_s=MPIEXEC_S)


def reduce_all(
    answer: Callable[..., Any],
    given: Sequence[Sequence[torch.Tensor]],
    ops: Sequence[str],
    strides: Sequence[int],
    colours: Sequence[Sequence[int]],
) -> list[dict[str, Any]]:
    """Reduce each tensor in place by the answer; say what became of it and which calls were made."""
    from mpi4py import MPI

    me = MPI.COMM_WORLD.Get_rank()
    found = []
    for row, op, stride, colour in zip(given, ops, strides, colours, strict=True):
        world = counting(MPI.COMM_WORLD.Split(colour[me], me))
        mine = row[me]
        # a view whose elements do not lie side by side
        x = mine.new_zeros((*mine.shape[:-1], mine.shape[-1] * stride))[..., ::stride]
        x.copy_(mine)
        returned = answer(world, x, op)
        found.append({"x": x.clone(), "calls": world.calls, "returned": returned is not None})
    return found


def counting(world: Any) -> Any:
    """Give a communicator like `world` that keeps the names of the calls made on it, in `calls`."""

    def counted(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            return getattr(super(kind, self), name)(*args, **kwargs)

        return call

    kind: Any = type(
        "Intracomm", (type(world),), {name: counted(name) for name in (*_BUFFERS, *_PICKLES)}
    )
    made = kind(world)
    made.calls = []
    return made
