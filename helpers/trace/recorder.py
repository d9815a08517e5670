"""Record one rank's communication calls, and write the records into the rank's log.

`kernels.py` uses the recorder for every communication call, and `inside.span` uses it for a rank's spans. A
record is one line (see `collector.py` for the kinds). Facts about a line of the learner's code are written
once, as a site.
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

from helpers.trace.events import MAX_EVENTS, MAX_UNWAITED
from helpers.trace.frames import (
    API,
    LEARNER,
    TORCH,
    code_kind,
    file_in_torch,
    frame_line,
    learner_callers,
    learner_frame,
)
from helpers.trace.tensor_summary import summarize

# Number of calls per rank whose tensor values are recorded in a task: as many as a page can replay.
MAX_SUMMARIES = 2_000
CALLBACK_TIMEOUT_S = 0.1
_BLOCKING_P2P = frozenset({"send", "recv"})

# The lines are formatted by hand, because json.dumps would use a tenth of the time allowed for recording a
# call.
_CALL_FORMAT = '["call",%d,%d,%s,%d,%d,"%s",%s,%s]'
_WAIT_FORMAT = b'["wait",%d,%d]'
_END_FORMAT = '["end",%d,%d,%s,%s]'


class Recorder:
    """Creates records of a rank's calls, from any thread, and passes them to `write` in order."""

    def __init__(
        self,
        rank: int,
        write: Callable[[bytes], None],
        *,
        record_values: bool = False,
        max_events: float = MAX_EVENTS,
    ) -> None:
        self.rank = rank
        self._max_events = max_events
        self._record_values = record_values
        self._results: dict[int, list[weakref.ref[torch.Tensor]]] = {}
        self._write = write
        self._seq = self._task_began = 0
        self._lock = threading.Lock()
        self._main_thread = threading.main_thread().ident
        self._thread_state = threading.local()
        self._seq_by_work: weakref.WeakKeyDictionary[dist.Work, int] = weakref.WeakKeyDictionary()
        self._open_calls: set[int] = set()
        self._futures: dict[int, torch.futures.Future[Any]] = {}
        self._groups: dict[str, tuple[str, list[int]]] = {}
        self._sites: dict[tuple[Any, ...], int] = {}
        self._from_any: set[int] = set()
        # Asynchronous calls on the learner's lines, as long as no method of their Work has been called.
        self._unwaited: set[int] = set()
        # False in a process forked by the rank, in which the lock may be held by a thread that no longer
        # exists.
        self.active = True
        self._inherited: weakref.WeakSet[dist.ProcessGroup] = weakref.WeakSet()

    def bind_work(self, work: dist.Work | None) -> None:
        """Remember that `work` was returned by the last call of this thread."""
        # Until now our kernel kept the Work's Python object alive, so that this is the same object. From
        # now on only the caller keeps it alive, because an unreferenced Work must be destroyed.
        thread_state = self._thread_state.__dict__
        seq, thread_state["work"] = thread_state.pop("seq", None), None
        is_own = thread_state.pop("own", False)
        if work is not None and seq is not None:
            self._seq_by_work[work] = seq
            if is_own:
                self._unwaited.add(seq)

    def seq_of(self, work: dist.Work) -> int | None:
        """Return the number of the call that returned `work`, if it was recorded."""
        return self._seq_by_work.get(work)

    def is_from_any(self, seq: int) -> bool:
        """Return whether a receive accepts a message from any rank."""
        return seq in self._from_any

    def record_wait(self, seq: int, when_ns: int) -> None:
        """Record that the rank begins to wait for a call."""
        self._unwaited.discard(seq)
        self._write(_WAIT_FORMAT % (seq, when_ns))

    def record_use(self, work: dist.Work) -> None:
        """Record that the rank has asked for a Work's state or future, without waiting for the Work."""
        if (seq := self.seq_of(work)) is not None:
            self._unwaited.discard(seq)

    @property
    def records_values(self) -> bool:
        """Whether the next call's tensor values are recorded, for a reader who steps through the run."""
        return self._record_values and self._seq - self._task_began < MAX_SUMMARIES

    def record_values(
        self, seq: int, tensors: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        """Record the values in a call's tensors now, and in its result tensors when the call ends.

        The tensors are not kept alive, because recording must not change memory use.
        """
        self._write_values(seq, summarize(tensors), None)
        self._results[seq] = [weakref.ref(tensor) for tensor in results]

    def _write_values(self, seq: int, before: str | None, after: str | None) -> None:
        if before or after:
            self._write(json.dumps(["held", seq, before, after]).encode())

    def record_call(
        self, op: str, pg: dist.ProcessGroup, tensors: list[torch.Tensor], **details: Any
    ) -> int:
        """Record that a call was made. Return its number on this rank."""
        call, site, is_own = self._find_site(op)
        if op in _BLOCKING_P2P:
            details["asynchronous"] = call not in _BLOCKING_P2P
        group, ranks = self._group_members(pg)
        for key in ("peer", "root"):
            if (group_rank := details.get(key)) is not None:
                if key == "peer" and not 0 <= group_rank < len(ranks):
                    # gloo does not check the peer. For a wrong peer, it would read memory beyond its table,
                    # and hang or crash by chance.
                    raise ValueError(_no_such_peer_message(call, group_rank, len(ranks)))
                details[key] = ranks[group_rank] if 0 <= group_rank < len(ranks) else group_rank
        # Hold the lock only while taking a number, never while gloo or the learner's code may run.
        with self._lock:
            seq = self._seq
            self._seq += 1
        self._open_calls.add(seq)
        if op == "recv" and "peer" not in details:
            self._from_any.add(seq)
        self._thread_state.seq = seq
        self._thread_state.own = is_own and bool(details.get("asynchronous"))
        nbytes, dtype, shapes = 0, "", "[]"
        if tensors:
            dtype = _dtype_name(tensors[0].dtype)
            nbytes = sum([tensor.numel() * tensor.element_size() for tensor in tensors])
            shapes = str([list(tensor.shape) for tensor in tensors[:16]])
        if seq - self._task_began < self._max_events:
            fields = (group, time.monotonic_ns(), nbytes, dtype, shapes, _format_details(details))
            self._write((_CALL_FORMAT % (seq, site, *fields)).encode())
        return seq

    def track_work(self, seq: int, work: dist.Work | None, asynchronous: bool) -> None:
        """Track a call's Work, because the call ends when the Work ends."""
        self._thread_state.work = work
        if work is None:
            self.record_end(seq)
        elif asynchronous:
            try:
                future = work.get_future()
            except RuntimeError:
                return  # Sends and receives have no future, so wait() records their end.
            # Keep the Work, so that `finish_task` finds transfers that have finished, but whose callbacks
            # have not run yet.
            self._futures[seq] = future
            future.add_done_callback(lambda done: self.record_end(seq))

    def finish_task(self) -> None:
        """Wait briefly for the callbacks of finished transfers, and record the existing groups.

        Must be called after each task, because the limit of events starts again with the next task.
        Groups are recorded because each group has separate connections, even if no call has used it.
        """
        deadline = time.monotonic() + CALLBACK_TIMEOUT_S
        while time.monotonic() < deadline and any(
            future.done() for future in list(self._futures.values())
        ):
            time.sleep(0.0002)
        self._task_began = self._seq
        # In their next cell, live ranks may wait for a Work that still exists.
        dropped = self._dropped_calls()
        self._unwaited -= dropped
        if dropped:
            self._write(json.dumps(["unwaited", sorted(dropped)[:MAX_UNWAITED]]).encode())
        with suppress(Exception):  # The learner's code may have changed torch's tables.
            self._write(json.dumps(["groups", _gloo_groups()]).encode())

    def _dropped_calls(self) -> set[int]:
        return self._unwaited.difference(self._seq_by_work.values())

    def take_unwaited(self) -> set[int]:
        """Return the calls whose Work was dropped without a wait, and forget all unwaited calls."""
        dropped, self._unwaited = self._dropped_calls(), set()
        return dropped

    def record_end(self, seq: int, error: str = "", source: int | None = None) -> None:
        """Record that a call's Work has finished, once."""
        if not self.active:
            return
        now = time.monotonic_ns()
        # This is called both by a Work's wait() and by the callback of its future, on one of gloo's threads.
        # Only the first call counts.
        with self._lock:
            if seq not in self._open_calls:
                return
            self._open_calls.discard(seq)
        results = self._results.pop(seq, None)
        if results and not error:
            results_left = [tensor for ref in results if (tensor := ref()) is not None]
            self._write_values(seq, None, summarize(results_left))
        error_json = json.dumps(error[:500]) if error else '""'
        self._write(
            (_END_FORMAT % (seq, now, error_json, "null" if source is None else source)).encode()
        )
        self._futures.pop(seq, None)

    def stop_in_child(self) -> None:
        """Stop recording in this process, because it is not the rank, but a forked child of it."""
        self.active = False
        groups = importlib.import_module("torch.distributed.distributed_c10d")._world.pg_map
        self._inherited.update(groups)

    def is_inherited(self, pg: dist.ProcessGroup) -> bool:
        """Return whether a group already existed in the rank before the fork, so it has no threads here."""
        return pg in self._inherited

    @property
    def count(self) -> int:
        """Number of recorded calls and spans, which is also the next number to be used."""
        return self._seq

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Record the block's duration, as a span of the rank's work."""
        if not self.active:
            yield
            return
        with self._lock:
            seq = self._seq
            self._seq += 1
        frame = learner_frame(sys._getframe(1))
        site = self._record_site("span", name[:80], frame)
        self._open_calls.add(seq)
        self._write(
            (_CALL_FORMAT % (seq, site, '""', time.monotonic_ns(), 0, "", "[]", "{}")).encode()
        )
        try:
            yield
        finally:
            self.record_end(seq)

    def _find_site(self, op: str) -> tuple[str, int, bool]:
        """Return the function called by the learner that led to this call, and the number of its site.

        The last result is whether the learner's line called it directly, without torch's code in between.
        """
        frame: FrameType | None = sys._getframe(2)
        torch_code: CodeType | None = None
        if threading.get_ident() != self._main_thread:
            learner = learner_frame(frame)
            if learner is None:
                # DDP's reducer makes its calls in autograd's thread, so use the main thread's line:
                # backward().
                learner = learner_frame(sys._current_frames().get(self._main_thread or 0))
                return op, self._record_site(op, op, learner), False
        call = op
        while frame is not None:
            kind = code_kind(frame.f_code)
            if kind is LEARNER:
                break
            if kind is API:
                call = frame.f_code.co_name
            elif kind is TORCH and torch_code is None:
                torch_code = frame.f_code
            frame = frame.f_back
        if call.startswith("_"):
            call = op  # In a `with` block of a private function of torch, a learner calls op.
        is_own = frame is not None and torch_code is None
        return call, self._record_site(op, call, frame, torch_code), is_own

    def _record_site(
        self, op: str, call: str, frame: FrameType | None, torch_code: CodeType | None = None
    ) -> int:
        callers = learner_callers(frame)
        lines = tuple([(each.f_code, each.f_lasti) for each in (frame, *callers) if each])
        key = (op, call, lines, torch_code)
        site_id = self._sites.get(key)
        if site_id is None:
            site_id = self._sites[key] = len(self._sites)
            where = frame_line(frame) if frame else None
            file = file_in_torch(torch_code) if torch_code else ""
            outer = [frame_line(each) for each in callers]
            self._write(json.dumps(["site", site_id, op, call, where, file, outer]).encode())
        return site_id

    def _group_members(self, pg: dist.ProcessGroup) -> tuple[str, list[int]]:
        """Return a group's name as JSON and its global ranks."""
        name = pg.group_name
        group = self._groups.get(name)
        if group is None:
            text = json.dumps(name)
            try:
                group = text, list(dist.get_process_group_ranks(pg))
            except (KeyError, ValueError):
                # The group is already in use before init_process_group has finished.
                return text, list(range(pg.size()))
            self._groups[name] = group
            self._write(json.dumps(["group", name, group[1]]).encode())
        return group


def _gloo_groups() -> list[tuple[str, list[int]]]:
    """Return the name and the global ranks of each gloo group in this rank."""
    torch_world = importlib.import_module("torch.distributed.distributed_c10d")._world
    return [
        (torch_world.pg_names[group], sorted(torch_world.pg_group_ranks[group]))
        for group, (backend, _) in list(torch_world.pg_map.items())
        if "gloo" in backend
    ]


def _format_details(details: dict[str, Any]) -> str:
    """Write further fields of a call's record as JSON: numbers, lists of numbers, flags and plain words."""
    parts = []
    for key, value in details.items():
        if value is True:
            parts.append(f'"{key}":true')
        elif isinstance(value, str):
            parts.append(f'"{key}":"{value}"')
        elif isinstance(value, list):
            parts.append(f'"{key}":{value}')
        elif value is not None and value is not False:
            parts.append(f'"{key}":{int(value)}')
    return "{" + ",".join(parts) + "}"


def _no_such_peer_message(call: str, peer: int, size: int) -> str:
    return (
        f"{call} names rank {peer}, but its group has only {size} ranks, 0 to {size - 1}. Is `% "
        "world_size` missing, or should this rank skip the call?"
    )


@functools.cache
def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
