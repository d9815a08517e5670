"""Makes records of one rank's communication calls and writes them into the rank's log.

`kernels.py` calls it for every call that passes the dispatcher, `inside.span` for a rank's own
spans. A record is one line (`collector.py` says which there are); what a line of the learner's code
needs to say of itself is written once, as a site.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FrameType
from typing import Any

import torch
import torch.distributed as dist

from helpers.trace.frames import API, LEARNER, TORCH, file_in_torch, kind_of, learner_frame, place
from helpers.trace.glance import glance

MAX_EVENTS = 50_000
# Calls of a task whose tensors are looked into: as many as a page plays of each rank.
MOST_GLANCES = 2_000
SETTLE_S = 0.1
_BLOCKING_P2P = frozenset({"send", "recv"})

# Lines are put together by hand: json.dumps would cost a tenth of what a recorded call may take.
_CALL = '["call",%d,%d,%s,%d,%d,"%s",%s,%s]'
_WAIT = b'["wait",%d,%d]'
_END = '["end",%d,%d,%s,%s]'


class Recorder:
    """Makes records of a rank's calls and gives them to `write`, in order, from any thread."""

    def __init__(self, rank: int, write: Callable[[bytes], None], *, watched: bool = False) -> None:
        self.rank = rank
        self._watched = watched
        self._results: dict[int, list[weakref.ref[torch.Tensor]]] = {}
        self._write = write
        self._seq = self._task_began = 0
        self._lock = threading.Lock()
        self._main = threading.main_thread().ident
        self._here = threading.local()
        self._by_work: weakref.WeakKeyDictionary[dist.Work, int] = weakref.WeakKeyDictionary()
        self._open: set[int] = set()
        self._futures: dict[int, torch.futures.Future[Any]] = {}
        self._groups: dict[str, tuple[str, list[int]]] = {}
        self._sites: dict[tuple[Any, ...], int] = {}
        self._from_any: set[int] = set()
        # Not in a process that the rank has forked: there a lock may be held by a thread that is not.
        self.active = True
        self._inherited: weakref.WeakSet[dist.ProcessGroup] = weakref.WeakSet()

    def bind(self, work: dist.Work | None) -> None:
        """Take note that `work` is what the call that this thread made last has returned."""
        # Until here our kernel kept the Work's Python object alive, so that this is the same
        # object. From now on only the caller does: a Work that nobody keeps must be dropped.
        here = self._here.__dict__
        seq, here["work"] = here.pop("seq", None), None
        if work is not None and seq is not None:
            self._by_work[work] = seq

    def seq_of(self, work: dist.Work) -> int | None:
        """Return the number of the call that returned `work`, if it was recorded."""
        return self._by_work.get(work)

    def is_from_any(self, seq: int) -> bool:
        """Whether a receive takes a message from any rank."""
        return seq in self._from_any

    def waits(self, seq: int, when_ns: int) -> None:
        """Record that the rank begins to wait for a call."""
        self._write(_WAIT % (seq, when_ns))

    @property
    def looks(self) -> bool:
        """Whether the next call's tensors are looked into, for a reader who watches."""
        return self._watched and self._seq - self._task_began < MOST_GLANCES

    def look(self, seq: int, given: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """Record what is in the tensors that a call is given, and when it ends in those it fills.

        Until then they are not kept: who drops a tensor is rid of it, watched or not.
        """
        self._held(seq, glance(given), None)
        self._results[seq] = [weakref.ref(tensor) for tensor in results]

    def _held(self, seq: int, before: str | None, after: str | None) -> None:
        if before or after:
            self._write(json.dumps(["held", seq, before, after]).encode())

    def issued(
        self, op: str, pg: dist.ProcessGroup, tensors: list[torch.Tensor], **more: Any
    ) -> int:
        """Record that a call was made; give its number on this rank."""
        call, site = self._site_of(op)
        if op in _BLOCKING_P2P:
            more["asynchronous"] = call not in _BLOCKING_P2P
        group, ranks = self._members(pg)
        for key in ("peer", "root"):
            if (named := more.get(key)) is not None:
                if key == "peer" and not 0 <= named < len(ranks):
                    # gloo does not look: it would read memory not its own, and hang or crash by chance
                    raise ValueError(_no_such_peer(call, named, len(ranks)))
                more[key] = ranks[named] if 0 <= named < len(ranks) else named
        # The lock is held for the number alone: never while gloo or the learner's code may run.
        with self._lock:
            seq = self._seq
            self._seq += 1
        self._open.add(seq)
        if op == "recv" and "peer" not in more:
            self._from_any.add(seq)
        self._here.seq = seq
        nbytes, dtype, shapes = 0, "", "[]"
        if tensors:
            dtype = _name_of(tensors[0].dtype)
            nbytes = sum([t.numel() * t.element_size() for t in tensors])
            shapes = str([list(t.shape) for t in tensors[:16]])
        if seq - self._task_began < MAX_EVENTS:
            about = (group, time.monotonic_ns(), nbytes, dtype, shapes, _about(more))
            self._write((_CALL % (seq, site, *about)).encode())
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
            # Kept so that `settle` sees which transfers are over while their callback is still to run.
            self._futures[seq] = future
            future.add_done_callback(lambda done: self.ended(seq))

    def settle(self) -> None:
        """Wait a moment for the ends of transfers that are over but whose callback is still to run.

        Called when a task has ended: the next one may have as many events again. Groups are recorded, too:
        each has connections of its own, also where no call has used it.
        """
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline and any(f.done() for f in list(self._futures.values())):
            time.sleep(0.0002)
        self._task_began = self._seq
        with suppress(Exception):  # torch's own tables, which the learner's code may have changed
            self._write(json.dumps(["groups", _gloo_groups()]).encode())

    def ended(self, seq: int, error: str = "", source: int | None = None) -> None:
        """Record that a call's Work has finished, once."""
        if not self.active:
            return
        now = time.monotonic_ns()
        # A Work's wait() and its future's callback, on a thread of gloo's, both come here: the first counts.
        with self._lock:
            if seq not in self._open:
                return
            self._open.discard(seq)
        results = self._results.pop(seq, None)
        if results and not error:
            left = [tensor for ref in results if (tensor := ref()) is not None]
            self._held(seq, None, glance(left))
        said = json.dumps(error[:500]) if error else '""'
        self._write((_END % (seq, now, said, "null" if source is None else source)).encode())
        self._futures.pop(seq, None)

    def stop_in_child(self) -> None:
        """Record nothing more in this process, which the rank has forked: it is not the rank."""
        self.active = False
        groups = importlib.import_module("torch.distributed.distributed_c10d")._world.pg_map
        self._inherited.update(groups)

    def is_inherited(self, pg: dist.ProcessGroup) -> bool:
        """Whether a group was the rank's before this process was forked, so that it has no threads here."""
        return pg in self._inherited

    @property
    def count(self) -> int:
        """How many calls and spans were recorded until now: the number of the next one."""
        return self._seq

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Record the time that the block takes as a span of the rank's own work."""
        if not self.active:
            yield
            return
        with self._lock:
            seq = self._seq
            self._seq += 1
        frame = learner_frame(sys._getframe(1))
        site = self._site("span", name[:80], frame)
        self._open.add(seq)
        self._write((_CALL % (seq, site, '""', time.monotonic_ns(), 0, "", "[]", "{}")).encode())
        try:
            yield
        finally:
            self.ended(seq)

    def _site_of(self, op: str) -> tuple[str, int]:
        """Return the function that the learner called to make this call, and the number of its site."""
        frame: FrameType | None = sys._getframe(2)
        by: CodeType | None = None
        if threading.get_ident() != self._main:
            learner = learner_frame(frame)
            if learner is None:
                # DDP's reducer calls from autograd's thread: the line is backward()'s
                learner = learner_frame(sys._current_frames().get(self._main or 0))
                return op, self._site(op, op, learner)
        call = op
        while frame is not None:
            kind = kind_of(frame.f_code)
            if kind is LEARNER:
                break
            if kind is API:
                call = frame.f_code.co_name
            elif kind is TORCH and by is None:
                by = frame.f_code
            frame = frame.f_back
        return call, self._site(op, call, frame, by)

    def _site(self, op: str, call: str, frame: FrameType | None, by: CodeType | None = None) -> int:
        key = (op, call, frame and frame.f_code, frame and frame.f_lasti, by)
        number = self._sites.get(key)
        if number is None:
            number = self._sites[key] = len(self._sites)
            where = place(frame) if frame else None
            file = file_in_torch(by) if by else ""
            self._write(json.dumps(["site", number, op, call, where, file]).encode())
        return number

    def _members(self, pg: dist.ProcessGroup) -> tuple[str, list[int]]:
        """Return a group's name as JSON and its global ranks."""
        name = pg.group_name
        known = self._groups.get(name)
        if known is None:
            text = json.dumps(name)
            try:
                known = text, list(dist.get_process_group_ranks(pg))
            except (KeyError, ValueError):  # used while init_process_group is still under way
                return text, list(range(pg.size()))
            self._groups[name] = known
            self._write(json.dumps(["group", name, known[1]]).encode())
        return known


def _gloo_groups() -> list[tuple[str, list[int]]]:
    """Return the name and the global ranks of each group of this rank's that is there now."""
    known = importlib.import_module("torch.distributed.distributed_c10d")._world
    return [
        (known.pg_names[group], sorted(known.pg_group_ranks[group]))
        for group, (backend, _) in list(known.pg_map.items())
        if "gloo" in backend
    ]


def _about(more: dict[str, Any]) -> str:
    """Write what a call's record says besides, as JSON: numbers, lists of them, flags and plain words."""
    parts = []
    for key, value in more.items():
        if value is True:
            parts.append(f'"{key}":true')
        elif isinstance(value, str):
            parts.append(f'"{key}":"{value}"')
        elif isinstance(value, list):
            parts.append(f'"{key}":{value}')
        elif value is not None and value is not False:
            parts.append(f'"{key}":{int(value)}')
    return "{" + ",".join(parts) + "}"


def _no_such_peer(call: str, peer: int, size: int) -> str:
    return (
        f"{call} names rank {peer}, but its group has only {size} ranks, 0 to {size - 1}. Is `% "
        "world_size` missing, or should this rank skip the call?"
    )


@functools.cache
def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
