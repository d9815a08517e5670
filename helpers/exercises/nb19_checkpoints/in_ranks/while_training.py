"""19.3: a training run that continues while its checkpoints are written."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from helpers.checks.script_worker import ask
from helpers.checks.scripts import Source, compose
from helpers.exercises.shared.in_ranks.attempts import (
    Plan,
    ask_for_step,
    attempt_number,
    join_attempt,
    run_attempts,
)

MAX_HOLD_S = 0.5
"""The maximum delay of a write, to observe the training. With a right answer, the delay ends at once."""
DISK_FULL_MESSAGE = "no space left on this disk"


def run_training(
    answer: Source,
    rank: int,
    world_size: int,
    sizes: list[int],
    plans: Sequence[Plan],
    *train_args: Any,
) -> dict[str, Any]:
    """Run the training in several attempts, each of which ends in a save."""
    return run_attempts(
        compose(answer, train_in_worker, train_args), sizes, plans, only_rank0_writes=False
    )


def train_one_step(local: torch.Tensor, step: int, number: float) -> None:
    """Change a part of the weight, so that the result depends on the number of steps and their order."""
    local.mul_(0.75).add_(step + 1 + number)


def train_in_worker(
    answer: Callable[..., Any],
    weight: torch.Tensor,
    steps: int,
    every: int,
    fails: list[int],
    cleans: bool,
) -> dict[str, Any]:
    """Call the answer in a worker, and record the simultaneous actions of its writes and its training.

    fails: (save, rank) of the failing write; save 0 means none. cleans: whether to remove the oldest
    checkpoint between two attempts.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    writes = WriteRecorder(steps)
    with join_attempt(writes.steps_done(every), lambda: writes.writes_begun) as disk:
        rank, group = dist.get_rank(), dist.new_group()
        writes.group, writes.failing_write = group, fails[0] if rank == fails[1] else 0
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        state = {"weight": distribute_tensor(weight, mesh, [Shard(0)])}
        local = state["weight"].to_local()
        if rank == 0:
            ask("found", find_whole_checkpoints(disk.folder, cleans and attempt_number() > 0))
        dist.barrier()
        disk.start()
        writes.watch()
        found: dict[str, Any] = {"began with": local.clone(), "raised": False}

        def train_step(step: int) -> None:
            if not writes.calls:
                found["began with"] = local.clone()
            (number,) = ask_for_step(step, len(disk.read_files))
            writes.calls.append(step)
            train_one_step(local, step, number)
            dist.all_reduce(torch.ones(1))

        try:
            answer(state, train_step, steps, every, str(disk.folder), group)
        except BaseException as error:
            if not any(
                DISK_FULL_MESSAGE in str(e) for e in (error, error.__cause__, error.__context__)
            ):
                raise
            found["raised"] = True
        writes.end()
        dist.barrier(group)
    return {
        **found,
        "steps": writes.calls,
        "writes": writes.writes_begun,
        "ends with": local,
        "noted": sorted(writes.observations),
    }


def find_whole_checkpoints(folder: Path, cleans: bool) -> list[str]:
    """Return the names of the whole checkpoints found by an attempt, oldest first.

    Modification times are set as if the folder had been copied between two attempts: the second newest
    checkpoint has the latest time. cleans: whether to remove the oldest checkpoint, unless it is the only
    one. If a name has no number, nothing is changed, because the order is unknown.
    """
    made = sorted({path.parent for path in folder.rglob("*") if path.is_file()}, key=_sort_key)
    whole = [path for path in made if _is_whole(path)]
    if all(_sort_key(path)[0] >= 0 for path in whole):
        if cleans and len(whole) > 1:
            shutil.rmtree(whole.pop(0))
        late = [*whole[:-2], *whole[:-3:-1]]
        for age, path in enumerate(late):
            for one in (path / ".metadata", path):
                with suppress(PermissionError):  # under Landlock, no process may set a file's times
                    os.utime(one, (1e9 + age, 1e9 + age))
    return [path.name for path in whole]


def _sort_key(path: Path) -> tuple[int, str]:
    numbers = re.findall(r"\d+", path.name)
    return int(numbers[-1]) if numbers else -1, path.name


def _is_whole(folder: Path) -> bool:
    """Return whether a checkpoint has all the bytes that its metadata lists."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader

    with suppress(Exception):
        parts = FileSystemReader(folder).read_metadata().storage_data.values()
        sizes = [(folder / p.relative_path).stat().st_size - p.offset - p.length for p in parts]
        return min(sizes, default=0) >= 0
    return False


@dataclass
class WriteRecorder:
    """Records the main thread's actions during a write of a checkpoint.

    The write is delayed until these actions are known.

    observations: "main thread" if the main thread writes; "waits" if it waits before it has begun another
    step; "two" if it begins a second write; "group" if the write uses a different group; "at the end" if the
    answer has returned; "own thread" if a thread other than that of async_save writes. failing_write: the
    number of the failing write, counting from 1.
    """

    steps: int
    group: Any = None
    failing_write: int = 0
    calls: list[int] = field(default_factory=list)
    writes_begun: int = 0
    observations: set[str] = field(default_factory=set)
    _futures: list[Any] = field(default_factory=list)
    _saves: int = 0
    _calls_at_start: int = 0
    _returned: bool = False

    def steps_done(self, every: int) -> Callable[[], int]:
        """Return a function that counts the steps up to the last save begun in this attempt."""
        return lambda: self.calls[0] + self.writes_begun * every if self.calls else 0

    def watch(self) -> None:
        """Watch every write of DCP, whatever code starts it."""
        from torch.distributed.checkpoint import _async_thread_executor as executor
        from torch.distributed.checkpoint import utils
        from torch.distributed.checkpoint.filesystem import FileSystemWriter

        kind: Any = executor._ThreadBasedAsyncCheckpointExecutor
        kind.execute_save = self._wrap_execute_save(kind.execute_save)
        wrapper: Any = utils._DistWrapper
        wrapper.__init__ = self._wrap_group_init(wrapper.__init__)
        writer: Any = FileSystemWriter
        writer.write_data = self._wrap_write_data(writer.write_data)
        thread: Any = threading.Thread
        thread.start = self._wrap_thread_start(thread.start)

    def end(self) -> None:
        """Record that the answer has returned, and wait for its remaining writes."""
        self._returned = True
        for future in self._futures:
            if not future.done():
                self.observations.add("at the end")
            future.exception()

    def _wrap_thread_start(self, real: Callable[..., None]) -> Callable[..., None]:
        def start(thread: threading.Thread) -> None:
            if _is_main_thread():
                self._calls_at_start = len(self.calls)
            real(thread)

        return start

    def _wrap_execute_save(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def execute_save(*args: Any, **kwargs: Any) -> Any:
            self._saves += 1
            for future in self._futures:
                if not future.done():
                    self.observations.add("two")
                    # if both ran in parallel, they could call collectives in different orders
                    future.exception()
            self._futures.append(real(*args, **kwargs))
            return self._futures[-1]

        return execute_save

    def _wrap_group_init(self, real: Callable[..., None]) -> Callable[..., None]:
        def init(wrapper: Any, group: Any, *args: Any, **kwargs: Any) -> None:
            if _is_main_thread() or dist.get_world_size() == 1:
                return real(wrapper, group, *args, **kwargs)
            if group is not self.group:
                # use this group, so that the calls of two threads cannot mix
                self.observations.add("group")
            return real(wrapper, self.group, *args, **kwargs)

        return init

    def _wrap_write_data(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def write_data(*args: Any, **kwargs: Any) -> Any:
            self.writes_begun += 1
            if _is_main_thread():
                self.observations.add("main thread")
            else:
                if not threading.current_thread().name.startswith("AsyncCheckpoint"):
                    self.observations.add("own thread")
                self._hold(self._calls_at_start, self._saves)
            if self.writes_begun == self.failing_write:
                raise OSError(errno.ENOSPC, DISK_FULL_MESSAGE)
            return real(*args, **kwargs)

        return write_data

    def _hold(self, calls: int, saves: int) -> None:
        """Wait until the main thread waits for a future or a thread, saves again, or has returned."""
        give_up, waited = time.monotonic() + MAX_HOLD_S, 0
        while time.monotonic() < give_up and self._saves == saves and not self._returned:
            waited = waited + 1 if _main_thread_waits() else 0
            if waited == 4:
                if len(self.calls) == calls and self.calls[-1] + 1 < self.steps:
                    self.observations.add("waits")
                return
            time.sleep(0.003)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _main_thread_waits() -> bool:
    """Return whether the main thread waits for a future or for a thread to end."""
    frame: FrameType | None = sys._current_frames()[threading.main_thread().ident or 0]
    names = []
    while frame is not None and "/threading.py" in frame.f_code.co_filename:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return bool(names) and "start" not in names  # `Thread.start` also waits for a moment
