"""Records, inside one rank, every communication call: Python's, DDP's from C++, DTensor's, FSDP's.

    dist.all_reduce ─┐
    funcol, DTensor ─┼─> c10d::allreduce_ (dispatcher) ─> our kernel ─> Backend.allreduce ─> Work
    DDP's reducer ───┘                                        │                               │
                                                        issue event          end event: Work.wait, or
                                                                             its future's callback

A kernel for each `c10d::*` op sits on the dispatch key where every caller passes, and calls the
backend's method itself. That method gives up the GIL; calling the kernel that was there before
would keep it, and gloo's own threads need it to free tensors: a deadlock that shows in one run in
seven. Methods of `ProcessGroup` and `Work.wait` are wrapped as well, to learn which Work belongs to
which call and when a rank begins to wait. The worker installs all this after the fork and hands the
events on to the launcher.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

Record = list[Any]
"""One line of a trace on its way to the launcher; `collector.py` reads it."""

MAX_EVENTS = 50_000
_TORCH = str(Path(torch.__file__).parent) + os.sep
_HELPERS = str(Path(__file__).parent.parent) + os.sep
_STDLIB = str(Path(os.__file__).parent) + os.sep
_WRAPPED = (
    "allreduce allreduce_coalesced allgather _allgather_base allgather_coalesced "
    "allgather_into_tensor_coalesced all_gather_single all_gather_single_coalesced "
    "reduce reduce_scatter _reduce_scatter_base reduce_scatter_tensor_coalesced "
    "reduce_scatter_single reduce_scatter_single_coalesced broadcast gather scatter "
    "alltoall alltoall_base all_to_all_single barrier send recv recv_anysource"
).split()
_BLOCKING_P2P = frozenset({"send", "recv"})


class Recorder:
    """Makes records of a rank's calls and gives them to `emit`, in order, from any thread.

    emit(record, urgent): urgent records leave before the call that follows can block or crash.
    """

    def __init__(self, rank: int, emit: Callable[[Record, bool], None]) -> None:
        self.rank = rank
        self._emit = emit
        self._seq = 0
        self._lock = threading.Lock()
        self._main = threading.main_thread().ident
        self._here = threading.local()
        self._by_work: weakref.WeakKeyDictionary[dist.Work, int] = weakref.WeakKeyDictionary()
        self._open: set[int] = set()
        self._groups: dict[str, list[int]] = {}
        self._library: torch.library.Library | None = None
        self.active = True

    # -- what is installed ---------------------------------------------------------------------

    def install(self, device_keys: tuple[str, ...] = ("CPU",)) -> None:
        """Put the kernels and wrappers in place, for the life of this process."""
        self._library = torch.library.Library("c10d", "IMPL")  # noqa: TOR901 (kept alive here)
        with warnings.catch_warnings(), _quiet_stderr():
            warnings.simplefilter("ignore")  # that we override kernels is the purpose
            for key in device_keys:
                for name, kernel in _kernels(self, torch.device(key.lower())).items():
                    self._library.impl(name, kernel, key)
        for name in filter(functools.partial(hasattr, dist.ProcessGroup), _WRAPPED):
            setattr(dist.ProcessGroup, name, self._binding(getattr(dist.ProcessGroup, name)))
        dist.Work.wait = self._waiting(dist.Work.wait)  # type: ignore[method-assign]

    def _binding(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            work = method(*args, **kwargs)
            # Until here our kernel kept the Work's Python object alive, so that this is the same
            # object. From now on only the caller does: a Work that nobody keeps must be dropped.
            seq, self._here.work = getattr(self._here, "seq", None), None
            if work is not None and seq is not None:
                self._by_work[work] = seq
            return work

        return call

    def _waiting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def wait(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
            seq = self._by_work.get(work) if self.active else None
            if seq is None:
                return method(work, *args, **kwargs)
            self._emit(["wait", seq, time.monotonic_ns()], True)
            try:
                result = method(work, *args, **kwargs)
            except BaseException as error:
                self.ended(seq, str(error) or type(error).__name__)
                raise
            self.ended(seq, source=_source_of(work))
            return result

        return wait

    # -- what is recorded ----------------------------------------------------------------------

    def issued(self, op: str, pg: dist.ProcessGroup, tensors: list[torch.Tensor], **more: Any) -> int:
        """Record that a call was made; give its number on this rank."""
        call, place = self._caller(op)
        if op in _BLOCKING_P2P:
            more["asynchronous"] = call not in _BLOCKING_P2P
        with self._lock:
            seq = self._seq
            self._seq += 1
        group, ranks = self._members(pg)
        for key in ("peer", "root"):
            if more.get(key) is not None:
                more[key] = ranks[more[key]] if 0 <= more[key] < len(ranks) else more[key]
        more["nbytes"] = sum(t.numel() * t.element_size() for t in tensors)
        more["dtype"] = str(tensors[0].dtype).removeprefix("torch.") if tensors else ""
        more["shapes"] = [list(t.shape) for t in tensors[:16]]
        if seq >= MAX_EVENTS:
            more = {"nbytes": 0}
        self._open.add(seq)
        self._here.seq = seq
        self._emit(["call", seq, op, call, group, place, time.monotonic_ns(), more], True)
        return seq

    def follow(self, seq: int, work: dist.Work | None, asynchronous: bool) -> None:
        """Take note of a call's Work: it ends when the Work does."""
        self._here.work = work
        if work is None:
            self.ended(seq)
        elif asynchronous:
            try:
                future = work.get_future()
            except RuntimeError:
                return  # sends and receives have no future: they are seen to end when waited for
            future.add_done_callback(lambda done: self.ended(seq))

    def ended(self, seq: int, error: str = "", source: int | None = None) -> None:
        """Record that a call's Work has finished, once."""
        now = time.monotonic_ns()
        with self._lock:
            if seq not in self._open:
                return
            self._open.discard(seq)
        if self.active:
            self._emit(["end", seq, now, error[:500], source], False)

    @property
    def outstanding(self) -> int:
        return len(self._open)

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Record the time that the block takes as a span of the rank's own work."""
        with self._lock:
            seq = self._seq
            self._seq += 1
        frame = _learner_frame(sys._getframe(1))
        place = _place(frame) if frame else None
        self._emit(["call", seq, "span", name[:80], "", place, time.monotonic_ns(), {}], False)
        self._open.add(seq)
        try:
            yield
        finally:
            self.ended(seq)

    def whereabouts(self) -> tuple[list[Any] | None, str]:
        """Tell where the main thread is: the learner's line, and the torch function it is inside."""
        frame = sys._current_frames().get(self._main or 0)
        if frame is None:
            return None, ""
        code = frame.f_code
        inside = code.co_name if code.co_filename.startswith(_TORCH) else ""
        learner = _learner_frame(frame)
        return (_place(learner) if learner else None), inside

    def _caller(self, op: str) -> tuple[str, list[Any] | None]:
        frame: FrameType | None = sys._getframe(2)
        if threading.get_ident() != self._main:
            place = _learner_frame(frame)
            if place is None:  # DDP's reducer calls from autograd's thread: the line is backward()'s
                frame = sys._current_frames().get(self._main or 0)
                place = _learner_frame(frame)
                return op, _place(place) if place else None
        call = op
        while frame is not None and not _is_learner(frame.f_code):
            name = frame.f_code.co_filename
            if name.startswith(_TORCH) and name.endswith(_API_FILES):
                if frame.f_code.co_name not in {"wrapper", "call"}:
                    call = frame.f_code.co_name
            frame = frame.f_back
        return call, _place(frame) if frame else None

    def _members(self, pg: dist.ProcessGroup) -> tuple[str, list[int]]:
        name = pg.group_name
        if name not in self._groups:
            try:
                ranks = list(dist.get_process_group_ranks(pg))
            except (KeyError, ValueError):  # used while init_process_group is still under way
                return name, list(range(pg.size()))
            self._groups[name] = ranks
            self._emit(["group", name, ranks], False)
        return name, self._groups[name]


_API_FILES = ("distributed_c10d.py", "_functional_collectives.py", "_ops.py")


@functools.cache
def _is_learner(code: CodeType) -> bool:
    name = code.co_filename
    return not (name.startswith((_TORCH, _HELPERS, _STDLIB, "<frozen")) or "site-packages" in name)


def _learner_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not _is_learner(frame.f_code):
        frame = frame.f_back
    return frame


def _place(frame: FrameType) -> list[Any]:
    return [frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name]


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
    return dist.ReduceOp(dist.ReduceOp.RedOpType(boxed.op()))  # type: ignore[call-arg]


def _kernels(rec: Recorder, device: torch.device) -> dict[str, Callable[..., Any]]:
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
        if not rec.active:
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
        return run("send", pg, tensors, True, lambda b: b.send(tensors, dst, tag), peer=dst, tag=tag)

    def recv(tensors: Any, pg: Any, src: int, tag: int) -> Any:
        return run("recv", pg, tensors, True, lambda b: b.recv(tensors, src, tag), peer=src, tag=tag)

    def recv_any(tensors: Any, pg: Any, tag: int) -> Any:
        return run("recv", pg, tensors, True, lambda b: b.recv_anysource(tensors, tag), tag=tag)

    def broadcast(tensors: Any, pg: Any, root: int, root_tensor: int, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.BroadcastOptions, ms, rootRank=root, rootTensor=root_tensor, asyncOp=asy)
        return tensors, run("broadcast", pg, tensors, asy, lambda b: b.broadcast(tensors, o), root=root)

    def allreduce(tensors: Any, pg: Any, op: Any, sparse: Any, asy: bool = True, ms: int = -1) -> Any:
        kind = _reduce_op(op)
        o = _options(c10d.AllreduceOptions, ms, reduceOp=kind, asyncOp=asy)
        name = _op_name(kind)
        work = run("all_reduce", pg, tensors, asy, lambda b: b.allreduce(tensors, o), reduce_op=name)
        return tensors, work

    def allreduce_coalesced(tensors: Any, pg: Any, op: Any, asy: bool = True, ms: int = -1) -> Any:
        kind = _reduce_op(op)
        o = _options(c10d.AllreduceCoalescedOptions, ms, reduceOp=kind, asyncOp=asy)
        name = _op_name(kind)
        return run(
            "all_reduce", pg, tensors, asy, lambda b: b.allreduce_coalesced(tensors, o), reduce_op=name
        )

    def reduce(
        tensors: Any, pg: Any, op: Any, root: int, root_tensor: int, asy: bool = True, ms: int = -1
    ) -> Any:
        kind = _reduce_op(op)
        o = _options(
            c10d.ReduceOptions, ms, reduceOp=kind, rootRank=root, rootTensor=root_tensor, asyncOp=asy
        )
        name = _op_name(kind)
        return run("reduce", pg, tensors, asy, lambda b: b.reduce(tensors, o), root=root, reduce_op=name)

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

        def do(backend: Any) -> dist.Work | None:
            # the one method that Python's Backend lacks; gloo's own is these lines in C++
            if device.type == "cpu":
                chunks = zip(*(out.chunk(backend.size()) for out in outs), strict=True)
                return backend.allgather_coalesced([list(c) for c in chunks], ins, o)
            works = [backend._allgather_base(out, i, o) for out, i in zip(outs, ins, strict=True)]
            return works[-1]  # NCCL ends them in order, on one stream

        return run("all_gather", pg, ins, asy, do)

    def reduce_scatter(outs: Any, ins: Any, pg: Any, op: Any, asy: bool = True, ms: int = -1) -> Any:
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

    def reduce_scatter_base(out: Any, inp: Any, pg: Any, op: Any, asy: bool = True, ms: int = -1) -> Any:
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

    def reduce_scatter_into(outs: Any, ins: Any, pg: Any, op: Any, asy: bool = True, ms: int = -1) -> Any:
        kind = _reduce_op(op)
        o = _options(c10d.ReduceScatterOptions, ms, reduceOp=kind, asyncOp=asy)
        return run(
            "reduce_scatter",
            pg,
            ins,
            asy,
            lambda b: b.reduce_scatter_tensor_coalesced(outs, ins, o),
            reduce_op=_op_name(kind),
        )

    def gather(outs: Any, ins: Any, pg: Any, root: int, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.GatherOptions, ms, rootRank=root, asyncOp=asy)
        return run("gather", pg, ins, asy, lambda b: b.gather(outs, ins, o), root=root)

    def scatter(outs: Any, ins: Any, pg: Any, root: int, asy: bool = True, ms: int = -1) -> Any:
        o = _options(c10d.ScatterOptions, ms, rootRank=root, asyncOp=asy)
        return outs, run("scatter", pg, _flat(ins), asy, lambda b: b.scatter(outs, ins, o), root=root)

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
