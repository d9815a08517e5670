"""The kernels that every communication call of a rank passes, whoever makes it.

    dist.all_reduce ─┐
    funcol, DTensor ─┼─> c10d::allreduce_ (dispatcher) ─> our kernel ─> Backend.allreduce ─> Work
    DDP's reducer ───┘                                        │
                                                      Recorder.issued, .follow

A kernel for each `c10d::*` op sits on the dispatch key where every caller passes, and calls the
backend's method itself. That method gives up the GIL; calling the kernel that was there before
would keep it, and gloo's own threads need it to free tensors: a deadlock that shows in one run in
seven. The rank server installs them before it forks; they do nothing until a rank sets a recorder.
"""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from helpers.trace.recorder import Recorder

_WRAPPED = [
    "allreduce",
    "allreduce_coalesced",
    "allgather",
    "_allgather_base",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_coalesced",
    "reduce",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "broadcast",
    "gather",
    "scatter",
    "alltoall",
    "alltoall_base",
    "all_to_all_single",
    "barrier",
    "send",
    "recv",
    "recv_anysource",
]


class _Installed:
    """What is in place in this process, and the recorder of the rank that it is, if it is one."""

    libraries: dict[str, torch.library.Library] = {}
    recorder: Recorder | None = None


def install(device_type: str = "cpu") -> None:
    """Put the kernels for tensors on this kind of device in place, once in a process."""
    if device_type in _Installed.libraries:
        return
    if not _Installed.libraries:
        for name in filter(functools.partial(hasattr, dist.ProcessGroup), _WRAPPED):
            setattr(dist.ProcessGroup, name, _binding(getattr(dist.ProcessGroup, name)))
        dist.Work.wait = _waiting(dist.Work.wait)  # type: ignore[method-assign]
    library = _Installed.libraries[device_type] = torch.library.Library("c10d", "IMPL")  # noqa: TOR901
    with warnings.catch_warnings(), _quiet_stderr():
        warnings.simplefilter("ignore")  # that we override kernels is the purpose
        for name, kernel in _kernels(torch.device(device_type)).items():
            library.impl(name, kernel, device_type.upper())


def uninstall() -> None:
    """Take the kernels away again, for a rank that is not to be recorded."""
    for library in _Installed.libraries.values():
        library._destroy()
    _Installed.libraries.clear()


def record_with(recorder: Recorder) -> None:
    """Give all calls of this process, from now on, to `recorder`."""
    _Installed.recorder = recorder


def _active() -> Recorder | None:
    recorder = _Installed.recorder
    return recorder if recorder is not None and recorder.active else None


def _binding(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of ProcessGroup, to learn which Work belongs to which call."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        work = method(*args, **kwargs)
        if (recorder := _active()) is not None:
            recorder.bind(work)
        return work

    return call


def _waiting(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap Work.wait, to learn when a rank begins to wait and when it need wait no longer."""

    @functools.wraps(method)
    def wait(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
        recorder = _active()
        seq = recorder.seq_of(work) if recorder is not None else None
        if recorder is None or seq is None:
            return method(work, *args, **kwargs)
        recorder.waits(seq, time.monotonic_ns())
        try:
            result = method(work, *args, **kwargs)
        except BaseException as error:
            recorder.ended(seq, str(error) or type(error).__name__)
            raise
        recorder.ended(seq, source=_source_of(work))
        return result

    return wait


def _source_of(work: dist.Work) -> int | None:
    try:
        return int(work._source_rank())
    except (RuntimeError, AttributeError):
        return None


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Hide C++'s own warning about overridden kernels, which no Python filter reaches."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def _flat(lists: Any) -> list[torch.Tensor]:
    return [t for item in lists for t in (item if isinstance(item, (list, tuple)) else [item])]


def _options(kind: type, timeout_ms: int = -1, **fields: Any) -> Any:
    options = kind()
    for name, value in fields.items():
        setattr(options, name, value)
    if timeout_ms >= 0:
        options.timeout = timedelta(milliseconds=timeout_ms)
    return options


def _reduce_op(boxed: Any) -> dist.ReduceOp:
    kind = dist.ReduceOp.RedOpType(boxed.op())
    if kind.name == "PREMUL_SUM":
        raise RuntimeError(
            "ReduceOp.PREMUL_SUM carries a factor, which a recorded call cannot hand on; gloo does not "
            "take it at all. With NCCL use launch(..., trace=False)."
        )
    return dist.ReduceOp(kind)


def _kernels(device: torch.device) -> dict[str, Callable[..., Any]]:
    """One kernel for each `c10d` op, with the arguments that its schema names.

    Each does what torch's own kernel does (torch/csrc/distributed/c10d/Ops.cpp): it finds the
    backend for its device and calls that backend's method.
    """

    def run(
        op: str,
        boxed_pg: Any,
        tensors: list[torch.Tensor],
        asynchronous: bool,
        do: Callable[[Any], dist.Work | None],
        **more: Any,
    ) -> Any:
        pg = dist.ProcessGroup.unbox(boxed_pg)
        backend = pg._get_backend(device)
        rec = _active()
        if rec is None:
            work = do(backend)
            return work.boxed() if work is not None else None
        seq = rec.issued(op, pg, tensors, asynchronous=asynchronous, **more)
        try:
            work = do(backend)
        except BaseException as error:
            rec.ended(seq, str(error) or type(error).__name__)
            raise
        rec.follow(seq, work, asynchronous)
        return work.boxed() if work is not None else None

    def send(tensors: Any, pg: Any, dst: int, tag: int) -> Any:
        return run(
            "send", pg, tensors, True, lambda b: b.send(tensors, dst, tag), peer=dst, tag=tag
        )

    def recv(tensors: Any, pg: Any, src: int, tag: int) -> Any:
        return run(
            "recv", pg, tensors, True, lambda b: b.recv(tensors, src, tag), peer=src, tag=tag
        )

    def recv_any(tensors: Any, pg: Any, tag: int) -> Any:
        return run("recv", pg, tensors, True, lambda b: b.recv_anysource(tensors, tag), tag=tag)

    def broadcast(
        tensors: Any, pg: Any, root: int, root_tensor: int, asy: bool = True, ms: int = -1
    ) -> Any:
        o = _options(c10d.BroadcastOptions, ms, rootRank=root, rootTensor=root_tensor, asyncOp=asy)
        return tensors, run(
            "broadcast", pg, tensors, asy, lambda b: b.broadcast(tensors, o), root=root
        )

    def allreduce(
        tensors: Any, pg: Any, op: Any, sparse: Any, asy: bool = True, ms: int = -1
    ) -> Any:
        kind = _reduce_op(op)
        o = _options(c10d.AllreduceOptions, ms, reduceOp=kind, asyncOp=asy)
        name = _op_name(kind)
        work = run(
            "all_reduce", pg, tensors, asy, lambda b: b.allreduce(tensors, o), reduce_op=name
        )
        return tensors, work

    def allreduce_coalesced(tensors: Any, pg: Any, op: Any, asy: bool = True, ms: int = -1) -> Any:
        kind = _reduce_op(op)
        o = _options(c10d.AllreduceCoalescedOptions, ms, reduceOp=kind, asyncOp=asy)
        name = _op_name(kind)
        return run(
            "all_reduce",
            pg,
            tensors,
            asy,
            lambda b: b.allreduce_coalesced(tensors, o),
            reduce_op=name,
        )

    def reduce(
        tensors: Any, pg: Any, op: Any, root: int, root_tensor: int, asy: bool = True, ms: int = -1
    ) -> Any:
        kind = _reduce_op(op)
        o = _options(
            c10d.ReduceOptions,
            ms,
            reduceOp=kind,
            rootRank=root,
            rootTensor=root_tensor,
            asyncOp=asy,
        )
        name = _op_name(kind)
        return run(
            "reduce", pg, tensors, asy, lambda b: b.reduce(tensors, o), root=root, reduce_op=name
        )

    def allgather(outs: Any, ins: Any, pg: Any, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.AllgatherOptions, ms, asyncOp=asy)
        return outs, run("all_gather", pg, ins, asy, lambda b: b.allgather(outs, ins, o))

    def allgather_base(out: Any, inp: Any, pg: Any, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.AllgatherOptions, ms, asyncOp=asy)
        return out, run("all_gather", pg, [inp], asy, lambda b: b._allgather_base(out, inp, o))

    def allgather_coalesced(outs: Any, ins: Any, pg: Any, asy: bool = True) -> Any:
        o = _options(c10d.AllgatherOptions, asyncOp=asy)
        return run("all_gather", pg, ins, asy, lambda b: b.allgather_coalesced(outs, ins, o))

    def allgather_into(outs: Any, ins: Any, pg: Any, asy: bool = True) -> Any:
        o = _options(c10d.AllgatherOptions, asyncOp=asy)

        def do(backend: Any) -> Any:
            # the one method that Python's Backend lacks; gloo's own is these lines in C++
            if device.type == "cpu":
                chunks = zip(*(out.chunk(backend.size()) for out in outs), strict=True)
                return backend.allgather_coalesced([list(c) for c in chunks], ins, o)
            works = [backend._allgather_base(out, i, o) for out, i in zip(outs, ins, strict=True)]
            return works[-1]  # NCCL ends them in order, on one stream

        return run("all_gather", pg, ins, asy, do)

    def reduce_scatter(
        outs: Any, ins: Any, pg: Any, op: Any, asy: bool = True, ms: int = -1
    ) -> Any:
        kind = _reduce_op(op)
        o = _options(c10d.ReduceScatterOptions, ms, reduceOp=kind, asyncOp=asy)
        work = run(
            "reduce_scatter",
            pg,
            _flat(ins),
            asy,
            lambda b: b.reduce_scatter(outs, ins, o),
            reduce_op=_op_name(kind),
        )
        return outs, work

    def reduce_scatter_base(
        out: Any, inp: Any, pg: Any, op: Any, asy: bool = True, ms: int = -1
    ) -> Any:
        kind = _reduce_op(op)
        o = _options(c10d.ReduceScatterOptions, ms, reduceOp=kind, asyncOp=asy)
        work = run(
            "reduce_scatter",
            pg,
            [inp],
            asy,
            lambda b: b._reduce_scatter_base(out, inp, o),
            reduce_op=_op_name(kind),
        )
        return out, work

    def reduce_scatter_into(
        outs: Any, ins: Any, pg: Any, op: Any, asy: bool = True, ms: int = -1
    ) -> Any:
        kind = _reduce_op(op)
        o = _options(c10d.ReduceScatterOptions, ms, reduceOp=kind, asyncOp=asy)

        def do(backend: Any) -> Any:
            if device.type != "cpu":
                return backend.reduce_scatter_tensor_coalesced(outs, ins, o)
            # Python's gloo lacks that method as well
            pairs = zip(outs, ins, strict=True)
            works = [backend._reduce_scatter_base(out, inp, o) for out, inp in pairs]
            for work in works[:-1]:
                work.wait()
            return works[-1]

        return run(
            "reduce_scatter",
            pg,
            ins,
            asy,
            do,
            reduce_op=_op_name(kind),
        )

    def gather(outs: Any, ins: Any, pg: Any, root: int, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.GatherOptions, ms, rootRank=root, asyncOp=asy)
        return run("gather", pg, ins, asy, lambda b: b.gather(outs, ins, o), root=root)

    def scatter(outs: Any, ins: Any, pg: Any, root: int, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.ScatterOptions, ms, rootRank=root, asyncOp=asy)
        return outs, run(
            "scatter", pg, _flat(ins), asy, lambda b: b.scatter(outs, ins, o), root=root
        )

    def alltoall(outs: Any, ins: Any, pg: Any, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.AllToAllOptions, ms, asyncOp=asy)
        return outs, run("all_to_all", pg, ins, asy, lambda b: b.alltoall(outs, ins, o))

    def alltoall_base(
        out: Any, inp: Any, pg: Any, out_split: Any, in_split: Any, asy: bool = True, ms: int = -1
    ) -> Any:
        o = _options(c10d.AllToAllOptions, ms, asyncOp=asy)
        return run(
            "all_to_all",
            pg,
            [inp],
            asy,
            lambda b: b.alltoall_base(out, inp, list(out_split), list(in_split), o),
        )

    def barrier(tensor: Any, pg: Any, device_ids: Any, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.BarrierOptions, ms, device_ids=list(device_ids), asyncOp=asy)
        return run("barrier", pg, [], asy, lambda b: b.barrier(o))

    def monitored(tensor: Any, pg: Any, device_ids: Any, ms: int, wait_all: bool) -> None:
        def do(backend: Any) -> None:
            backend.monitored_barrier(timedelta(milliseconds=ms), wait_all)

        run("barrier", pg, [], False, do)

    return {
        "send": send,
        "recv_": recv,
        "recv_any_source_": recv_any,
        "broadcast_": broadcast,
        "allreduce_": allreduce,
        "allreduce_coalesced_": allreduce_coalesced,
        "reduce_": reduce,
        "allgather_": allgather,
        "_allgather_base_": allgather_base,
        "allgather_coalesced_": allgather_coalesced,
        "allgather_into_tensor_coalesced_": allgather_into,
        "reduce_scatter_": reduce_scatter,
        "_reduce_scatter_base_": reduce_scatter_base,
        "reduce_scatter_tensor_coalesced_": reduce_scatter_into,
        "gather_": gather,
        "scatter_": scatter,
        "alltoall_": alltoall,
        "alltoall_base_": alltoall_base,
        "barrier": barrier,
        "monitored_barrier_": monitored,
    }


def _op_name(op: dist.ReduceOp) -> str:
    return str(op.op if hasattr(op, "op") else op).rsplit(".", 1)[-1]
