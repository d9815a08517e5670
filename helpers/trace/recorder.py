"""Makes records of one rank's communication calls and hands them on to the launcher.

`kernels.py` calls it for every call that passes the dispatcher, `inside.span` for a rank's own
spans. A record is a short list; `collector.py` puts the records of all ranks together.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
import torch.distributed as dist

Record = list[Any]
"""One line of a trace on its way to the launcher; `collector.py` reads it."""

MAX_EVENTS = 50_000
SETTLE_S = 0.1
_TORCH = str(Path(torch.__file__).parent) + os.sep
_HELPERS = str(Path(__file__).parent.parent) + os.sep
_STDLIB = str(Path(os.__file__).parent) + os.sep
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
        self._futures: dict[int, torch.futures.Future[Any]] = {}
        self._groups: dict[str, list[int]] = {}
        self.active = True

    def bind(self, work: dist.Work | None) -> None:
        """Take note that `work` is what the call that this thread made last has returned."""
        # Until here our kernel kept the Work's Python object alive, so that this is the same
        # object. From now on only the caller does: a Work that nobody keeps must be dropped.
        seq, self._here.work = getattr(self._here, "seq", None), None
        if work is not None and seq is not None:
            self._by_work[work] = seq

    def seq_of(self, work: dist.Work) -> int | None:
        """Give the number of the call that returned `work`, if it was recorded."""
        return self._by_work.get(work)

    def waits(self, seq: int, when_ns: int) -> None:
        """Record that the rank begins to wait for a call."""
        self._emit(["wait", seq, when_ns], True)

    def issued(
        self, op: str, pg: dist.ProcessGroup, tensors: list[torch.Tensor], **more: Any
    ) -> int:
        """Record that a call was made; give its number on this rank."""
        call, place = self._caller(op)
        if op in _BLOCKING_P2P:
            more["asynchronous"] = call not in _BLOCKING_P2P
        group, ranks = self._members(pg)
        if more.get("peer") is not None and not 0 <= more["peer"] < len(ranks):
            # gloo does not look: it would read memory that is not its own, and hang or crash by chance
            raise ValueError(
                f"{call} names rank {more['peer']}, but its group has only {len(ranks)} ranks, "
                f"0 to {len(ranks) - 1}. Is `% world_size` missing, or should this rank not "
                "make the call at all?"
            )
        for key in ("peer", "root"):
            if more.get(key) is not None:
                more[key] = ranks[more[key]] if 0 <= more[key] < len(ranks) else more[key]
        with self._lock:
            seq = self._seq
            self._seq += 1
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
            self._futures[seq] = future
            future.add_done_callback(lambda done: self.ended(seq))

    def settle(self) -> None:
        """Wait a moment for the ends of transfers that are over but whose callback is still to run."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline and any(f.done() for f in list(self._futures.values())):
            time.sleep(0.0002)

    def ended(self, seq: int, error: str = "", source: int | None = None) -> None:
        """Record that a call's Work has finished, once."""
        now = time.monotonic_ns()
        with self._lock:
            if seq not in self._open:
                return
            self._open.discard(seq)
        if self.active:
            self._emit(["end", seq, now, error[:500], source], False)
        self._futures.pop(seq, None)

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
        """Tell where the main thread is: the learner's line, and the torch function that it called.

        The function is "" unless the thread is inside torch at this moment.
        """
        frame = sys._current_frames().get(self._main or 0)
        if frame is None:
            return None, ""
        learner, called = _learner_frame(frame), ""
        if frame.f_code.co_filename.startswith(_TORCH):
            while frame is not None and frame is not learner:
                if frame.f_code.co_name not in _WRAPPERS:
                    called = frame.f_code.co_name
                frame = frame.f_back
        return (_place(learner) if learner else None), called

    def _caller(self, op: str) -> tuple[str, list[Any] | None]:
        frame: FrameType | None = sys._getframe(2)
        if threading.get_ident() != self._main:
            place = _learner_frame(frame)
            if (
                place is None
            ):  # DDP's reducer calls from autograd's thread: the line is backward()'s
                frame = sys._current_frames().get(self._main or 0)
                place = _learner_frame(frame)
                return op, _place(place) if place else None
        call = op
        while frame is not None and not _is_learner(frame.f_code):
            name = frame.f_code.co_filename
            of_api = name.startswith(_TORCH) and name.endswith(_API_FILES)
            if of_api and frame.f_code.co_name not in _WRAPPERS:
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


_WRAPPERS = frozenset({"wrapper", "call", "wait"})


@functools.cache
def _is_learner(code: CodeType) -> bool:
    name = code.co_filename
    ours = (_TORCH, _HELPERS, _STDLIB, "<frozen", "<string>")  # the last is the server's own start
    return not (name.startswith(ours) or "site-packages" in name)


def _learner_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not _is_learner(frame.f_code):
        frame = frame.f_back
    return frame


def _place(frame: FrameType) -> list[Any]:
    # on the way back to a loop's begin a frame has no line
    line = frame.f_lineno or frame.f_code.co_firstlineno
    return [frame.f_code.co_filename, line, frame.f_code.co_name]
