"""What runs around the answers of notebook 19: trainings that are killed, disks that kill, other worlds."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import FileStore

from helpers.checks.scripts import (
    Source,
    compose,
    under_fork,
    under_torchrun,
)
from helpers.ranks.inside import launch_folder

# --- a training that is killed --------------------------------------------------------------------

CURE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
REAL_S = 60.0


def _meet() -> None:
    """Join the group of this life of the job. A file is met at once; a store over TCP may take 0.3 s."""
    life = os.environ["TORCHELASTIC_RESTART_COUNT"]
    if os.environ["TORCHELASTIC_RUN_ID"] != "fork":
        return dist.init_process_group("gloo")
    file = Path(sys.argv[0]).resolve().parent / f"meeting {life}"
    return _join(file, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


class Training:
    """A small model with dropout and momentum, on the rows that a rank has in a step."""

    def __init__(self, seed: int, world_size: int) -> None:
        self.seed, self.world_size = seed, world_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.4), nn.Linear(8, 1))
            self.x = torch.randn(64, 6)
            self.y = self.x[:, :1].sin() + 0.1 * torch.randn(64, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def backward(self, epoch: int, step: int, rank: int) -> float:
        """Make one rank's gradients of one step, and give its loss."""
        order = torch.randperm(64, generator=torch.Generator().manual_seed(self.seed + epoch))
        rows = order[step * 4 * self.world_size :][rank : 4 * self.world_size : self.world_size]
        loss = nn.functional.mse_loss(self.model(self.x[rows]), self.y[rows])
        self.model.zero_grad()
        loss.backward()
        return float(loss.detach())

    def parameters(self) -> list[nn.Parameter]:
        return list(self.model.parameters())


def resume(
    answer: Source,
    rank: int,
    world_size: int,
    seed: int,
    nproc: int,
    epochs: int,
    steps: int,
    every: int,
    dies: Sequence[int],
    real: bool,
) -> dict[str, Any]:
    """Run a training that dies in step dies[0] and, if there is a dies[1], at that event of its saves."""
    script = compose(answer, train, (seed, epochs, steps, every, tuple(dies)))
    if real:
        return under_torchrun(script, nproc, max_restarts=len(dies), env=CURE, timeout_s=REAL_S)
    found = under_fork(script, nproc, max_restarts=len(dies), timeout_s=15)
    noted, began = script.parent / "died", script.parent / "life 1 began"
    died = json.loads(noted.read_text()) if noted.exists() else []
    second = json.loads(began.read_text()) if began.exists() else None
    for value in found["values"]:
        if isinstance(value, dict):
            value |= {"died": died, "second": second}
    if died and not any(isinstance(value, dict) for value in found["values"]):
        # words are said by what is known of the case: that it died in a save, and in which way
        found["values"] = [{"died": died}] * nproc
    return found


def train(
    answer: Callable[..., Any],
    seed: int,
    epochs: int,
    steps: int,
    every: int,
    dies: Sequence[int],
) -> dict[str, Any]:
    """Call the answer in a worker; be killed by SIGKILL where this attempt has to."""
    _meet()
    rank, size = dist.get_rank(), dist.get_world_size()
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    training = Training(seed, size)
    torch.manual_seed(seed + rank)
    calls: list[tuple[int, int]] = []

    script = Path(sys.argv[0]).resolve()

    def train_step(epoch: int, step: int) -> float:
        if not calls and rank == 0:
            (script.parent / f"life {attempt} began").write_text(json.dumps([epoch, step]))
        calls.append((epoch, step))
        mean = torch.tensor(training.backward(epoch, step, rank))
        grads = [p.grad for p in training.parameters() if p.grad is not None]
        for tensor in (mean, *grads):
            dist.all_reduce(tensor)
            tensor /= size
        training.optimizer.step()
        if attempt == 0 and dies and epoch * steps + step == dies[0] and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return float(mean)

    folder = script.parent / "checkpoints"
    folder.mkdir(exist_ok=True)
    disk = Disk(folder, dies[1] if attempt == 1 and len(dies) > 1 else 0, script.parent / "died")
    disk.done = lambda: calls[-1][0] * steps + calls[-1][1] + 1 if calls else 0
    disk.watch()
    losses = answer(
        training.model, training.optimizer, train_step, epochs, steps, every, str(folder)
    )
    dist.destroy_process_group()
    first = calls[0] if calls else None
    return {"losses": losses, "first": first, "writes": len(disk.written)}


@dataclass
class Disk:
    """Kills this process at one event of what it does to the files of a folder: half a file, a new name.

    last: the event, counted from 1; 0 for none. noted: a file in which the death is written down: how many
    steps were done, and the event. counts: whether events count by now. Files outside the folder are on
    another disk, as they are in a cluster.
    """

    folder: Path
    last: int
    noted: Path
    written: list[str] = field(default_factory=list)
    done: Callable[[], int] = int
    counts: Callable[[], bool] = lambda: True
    _events: int = 0

    def watch(self) -> None:
        """Put this watch around everything that writes, syncs, renames or removes files."""
        torch.save = self._saving(torch.save, io.open)
        builtins.open = io.open = self._opening(io.open)  # os.fdopen and tempfile call it, too
        os.fsync = self._syncing(os.fsync)
        for name in ("rename", "replace", "link", "symlink"):
            setattr(os, name, self._moving(getattr(os, name)))
        for name in ("remove", "unlink"):
            setattr(os, name, self._removing(getattr(os, name)))
        shutil.copyfile = self._copying(shutil.copyfile)

    def _is_inside(self, path: Any) -> bool:
        return isinstance(path, (str, os.PathLike)) and Path(path).resolve().is_relative_to(
            self.folder
        )

    def _happens(self, what: str, file: int | Path | None = None) -> None:
        """Count an event, and die of it if it is the one. `file` is left half written, if it is given."""
        if not self.counts():
            return
        self._events += 1
        if self._events == self.last:
            if file is not None:
                os.truncate(file, os.stat(file).st_size // 2)
            with os.fdopen(os.open(self.noted, os.O_WRONLY | os.O_CREAT), "w") as note:
                note.write(json.dumps([self.done(), what]))
            os.kill(os.getpid(), signal.SIGKILL)

    def _saving(
        self, real: Callable[..., None], real_open: Callable[..., Any]
    ) -> Callable[..., None]:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_inside(f):
                return real(obj, f, *args, **kwargs)
            real_open(f, "wb").close()  # which is what torch begins with, in C++
            self.written.append(str(f))
            self._happens("a file opened")
            real(obj, f, *args, **kwargs)
            self._happens("half a file", Path(f))

        return save

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            found = real(file, mode, *args, **kwargs)
            path = os.readlink(f"/proc/self/fd/{found.fileno()}") if set(mode) & set("wax+") else ""
            if path and self._is_inside(path):
                self.written.append(path)
                self._happens("a file opened")
                self._follow(found)
            return found

        return opened

    def _follow(self, file: Any) -> None:
        """Have a file that is open for writing die half-way through what each flush hands on."""
        write, flush, close, new = file.write, file.flush, file.close, False

        def writing(data: Any) -> Any:
            nonlocal new
            new = True
            return write(data)

        def flushing() -> None:
            nonlocal new
            flush()
            if new:
                new = False
                self._happens("half a file", file.fileno())

        def closing() -> None:
            if not file.closed:
                flushing()
            close()

        file.write, file.flush, file.close = writing, flushing, closing  # `with` calls close, too

    def _syncing(self, real: Callable[..., None]) -> Callable[..., None]:
        def sync(fd: Any) -> None:
            real(fd)
            number = fd if isinstance(fd, int) else fd.fileno()
            if self._is_inside(os.readlink(f"/proc/self/fd/{number}")):
                self._happens("a file synced")

        return sync

    def _moving(self, real: Callable[..., None]) -> Callable[..., None]:
        def move(old: Any, new: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_inside(new):
                return real(old, new, *args, **kwargs)
            if real.__name__ != "symlink" and not self._is_inside(old):
                raise OSError(errno.EXDEV, "Invalid cross-device link", str(old), None, str(new))
            self._happens("the old name")
            real(old, new, *args, **kwargs)
            self._happens("a new name")

        return move

    def _removing(self, real: Callable[..., None]) -> Callable[..., None]:
        def remove(path: Any, *args: Any, **kwargs: Any) -> None:
            real(path, *args, **kwargs)
            if self._is_inside(path):
                self._happens("a file removed")

        return remove

    def _copying(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def copy(old: Any, new: Any, **kwargs: Any) -> Any:
            real(old, new, **kwargs)
            if self._is_inside(new):
                self.written.append(str(new))
                self._happens("half a file", Path(new))
            return new

        return copy


# --- a training whose checkpoints are written beside it --------------------------------------------

HOLD_S = 0.5
"""How long a write waits for what the training does meanwhile. A right answer lets it go at once."""


def beside(
    answer: Source,
    rank: int,
    world_size: int,
    weight: torch.Tensor,
    nproc: int,
    steps: int,
    every: int,
    dies: tuple[int, int, int],
) -> dict[str, Any]:
    """Run a training; rank dies[0] is killed at event dies[1], if not 0, of its checkpoint number dies[2]."""
    script = compose(answer, train_beside, (weight, steps, every, list(dies)))
    found = under_fork(script, nproc, max_restarts=1, timeout_s=15)
    died = (script.parent / "died").exists()
    for value in found["values"]:
        if isinstance(value, dict):
            value["died"] = died
    if died and not any(isinstance(value, dict) for value in found["values"]):
        found["values"] = [{"died": True}] * nproc
    return found


def learn(local: torch.Tensor, step: int) -> None:
    """Do a step on a part of the weight: what comes out depends on the steps done, and on their order."""
    local.mul_(0.75).add_(step + 1)


def train_beside(
    answer: Callable[..., Any], weight: torch.Tensor, steps: int, every: int, dies: list[int]
) -> dict[str, Any]:
    """Call the answer in a worker, and watch what its writes and its training do at the same time."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    _meet()
    rank, group = dist.get_rank(), dist.new_group()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"weight": distribute_tensor(weight, mesh, [Shard(0)])}
    local = state["weight"].to_local()
    script = Path(sys.argv[0]).resolve()
    folder = script.parent / "checkpoints"
    folder.mkdir(exist_ok=True)
    first_life = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    disk = Disk(folder, dies[1] if first_life and rank == dies[0] else 0, script.parent / "died")
    writes = Writes(group, steps)
    disk.counts = lambda: writes.begun >= dies[2]
    disk.watch()
    writes.watch()
    found: dict[str, Any] = {"began with": local.clone()}

    def train_step(step: int) -> None:
        if not writes.calls:
            found["began with"] = local.clone()
        writes.calls.append(step)
        learn(local, step)
        dist.all_reduce(torch.ones(1))

    answer(state, train_step, steps, every, str(folder), group)
    writes.end()
    dist.barrier(group)
    dist.destroy_process_group()
    return {
        **found,
        "steps": writes.calls,
        "writes": writes.begun,
        "ends with": local,
        "noted": sorted(writes.noted),
    }


@dataclass
class Writes:
    """Notes what the main thread does while a checkpoint is written, and holds the write until that is known.

    noted: "main thread", it writes itself; "waits", it waits before it has begun another step; "two", it
    begins a second write; "group", the write talks on another group than its own; "at the end", the
    answer has returned.
    """

    group: dist.ProcessGroup
    steps: int
    calls: list[int] = field(default_factory=list)
    begun: int = 0
    noted: set[str] = field(default_factory=set)
    _futures: list[Any] = field(default_factory=list)
    _saves: int = 0
    _calls_at_start: int = 0
    _returned: bool = False

    def watch(self) -> None:
        """Put this watch around every write of DCP, whoever asks for it."""
        from torch.distributed.checkpoint import _async_thread_executor as executor
        from torch.distributed.checkpoint import utils
        from torch.distributed.checkpoint.filesystem import FileSystemWriter

        kind: Any = executor._ThreadBasedAsyncCheckpointExecutor
        kind.execute_save = self._beginning(kind.execute_save)
        wrapper: Any = utils._DistWrapper
        wrapper.__init__ = self._talking(wrapper.__init__)
        writer: Any = FileSystemWriter
        writer.write_data = self._holding(writer.write_data)
        thread: Any = threading.Thread
        thread.start = self._starting(thread.start)

    def end(self) -> None:
        """Note that the answer has returned; wait for what it has left."""
        self._returned = True
        for future in self._futures:
            if not future.done():
                self.noted.add("at the end")
            future.exception()

    def _starting(self, real: Callable[..., None]) -> Callable[..., None]:
        def start(thread: threading.Thread) -> None:
            if _is_main_thread():
                self._calls_at_start = len(self.calls)
            real(thread)

        return start

    def _beginning(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def execute_save(*args: Any, **kwargs: Any) -> Any:
            self._saves += 1
            for future in self._futures:
                if not future.done():
                    self.noted.add("two")
                    future.exception()  # two at once could meet in the wrong order: not today
            self._futures.append(real(*args, **kwargs))
            return self._futures[-1]

        return execute_save

    def _talking(self, real: Callable[..., None]) -> Callable[..., None]:
        def init(wrapper: Any, group: Any, *args: Any, **kwargs: Any) -> None:
            if _is_main_thread() or dist.get_world_size() == 1:
                return real(wrapper, group, *args, **kwargs)
            if group is not self.group:
                self.noted.add("group")  # the same holds for these two
            return real(wrapper, self.group, *args, **kwargs)

        return init

    def _holding(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def write_data(*args: Any, **kwargs: Any) -> Any:
            self.begun += 1
            if _is_main_thread():
                self.noted.add("main thread")
            else:
                self._hold(self._calls_at_start, self._saves)
            return real(*args, **kwargs)

        return write_data

    def _hold(self, calls: int, saves: int) -> None:
        """Wait until the main thread waits for a future or a thread, saves again, or has returned."""
        give_up, waited = time.monotonic() + HOLD_S, 0
        while time.monotonic() < give_up and self._saves == saves and not self._returned:
            waited = waited + 1 if _main_thread_waits() else 0
            if waited == 4:
                if len(self.calls) == calls and self.calls[-1] + 1 < self.steps:
                    self.noted.add("waits")
                return
            time.sleep(0.003)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _main_thread_waits() -> bool:
    """Tell whether the main thread waits for a future or for the end of a thread."""
    frame = sys._current_frames()[threading.main_thread().ident or 0]
    names = []
    while frame is not None and "/threading.py" in frame.f_code.co_filename:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return bool(names) and "start" not in names  # `start` waits for a moment, too


# --- a training that goes on exactly ---------------------------------------------------------------


class Job:
    """A model, its optimizer and scheduler, and one generator, which are the same on all ranks."""

    def __init__(self, seed: int, samples: int) -> None:
        made = torch.Generator().manual_seed(seed)
        self.x = torch.randn(samples, 4, generator=made, dtype=torch.float64)
        self.y = self.x.sum(1, keepdim=True).sin()
        model = nn.Linear(4, 1, dtype=torch.float64)
        with torch.no_grad():
            model.weight.copy_(torch.randn(1, 4, generator=made))
            model.bias.zero_()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.8)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.7)
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.parts: dict[str, Any] = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
        }
        self.generator = torch.Generator().manual_seed(seed + 1)

    def learn(self, rows: torch.Tensor, add_up: Callable[[torch.Tensor], Any]) -> float:
        """Do a step with these rows and those of the other ranks, over which `add_up` adds up."""
        noise = torch.randn(self.x.shape, generator=self.generator, dtype=torch.float64)
        seen = self.x[rows] + 0.2 * noise[rows]
        loss = (self.model(seen) - self.y[rows]).square().sum()
        self.optimizer.zero_grad()
        loss.backward()
        total = torch.stack([loss.detach(), torch.tensor(float(len(rows)), dtype=torch.float64)])
        add_up(total)
        for p in self.model.parameters():
            add_up(p.grad)
            p.grad /= total[1]
        self.optimizer.step()
        self.scheduler.step()
        return float(total[0] / total[1])


def go_on(
    answer: Source,
    rank: int,
    world_size: int,
    seed: int,
    sizes: list[int],
    dies: list[int],
    samples: int,
    batch: int,
    steps: int,
    every: int,
) -> dict[str, Any]:
    """Run jobs of these sizes one after the other on one folder; job i is killed after step dies[i]."""
    script = compose(answer, one_job, (seed, dies, samples, batch, steps, every))
    found = under_fork(script, sizes, timeout_s=15)
    rows = [
        [_lines(_rows_of(script.parent, life, r)) for r in range(size)]
        for life, size in enumerate(sizes)
    ]
    found["values"] = [
        {"losses": value["losses"], "rows": rows} if isinstance(value, dict) else value
        for value in found["values"]
    ]
    return found


def _rows_of(folder: Path, life: int, rank: int) -> Path:
    """Give the file in which a worker writes down what it trains: it may be killed at any moment."""
    return folder / f"rows of {rank} in {life}"


def _lines(path: Path) -> list[list[int]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def one_job(
    answer: Callable[..., Any],
    seed: int,
    dies: list[int],
    samples: int,
    batch: int,
    steps: int,
    every: int,
) -> dict[str, Any]:
    """Call the answer in a worker of one of the jobs."""
    _meet()
    rank, size = dist.get_rank(), dist.get_world_size()
    life = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    began = (dies[life - 1] + 1) // every * every if life else 0
    last = dies[life] if life < len(dies) else -1
    job = Job(seed, samples)
    script = Path(sys.argv[0]).resolve()
    folder = script.parent / "checkpoints"
    folder.mkdir(exist_ok=True)
    done = began

    def train_step(rows: Any) -> float:
        nonlocal done
        counted = [torch.empty(1, dtype=torch.int64) for _ in range(size)]
        dist.all_gather(counted, torch.tensor([job.scheduler.last_epoch]))
        if len(set(map(int, counted))) > 1:
            raise RuntimeError(
                f"the ranks' schedulers have counted {list(map(int, counted))} steps"
            )
        rows = torch.as_tensor(rows, dtype=torch.int64).flatten()
        with open(_rows_of(script.parent, life, rank), "a") as file:
            file.write(json.dumps(rows.tolist()) + "\n")
        loss = job.learn(rows, dist.all_reduce)
        done += 1
        if done == last + 1 and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return loss

    losses = answer(job.parts, job.generator, train_step, samples, batch, steps, every, str(folder))
    dist.destroy_process_group()
    return {"losses": losses}


# --- a checkpoint for another number of ranks -----------------------------------------------------


def reshard(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    saved: Mapping[str, torch.Tensor],
    shapes: dict[str, tuple[int, ...]],
    before: int,
    after: int,
) -> dict[str, Any] | None:
    """Save as a job of `before` ranks; load by the answer as a job of `after` ranks."""
    from torch.distributed.checkpoint.state_dict_saver import save
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    shared = launch_folder()
    folder = str(shared / "checkpoint")
    if rank < before:
        _join(shared / "first job", rank, before)
        mesh = init_device_mesh("cpu", (before,))
        save(
            {name: distribute_tensor(x, mesh, [Shard(0)]) for name, x in saved.items()},
            checkpoint_id=folder,
        )
        dist.destroy_process_group()
    _join(shared / "between", rank, world_size)
    dist.barrier()
    dist.destroy_process_group()
    if rank >= after:
        return None
    _join(shared / "second job", rank, after)
    read, mesh = _count_what_is_read(), init_device_mesh("cpu", (after,))
    found = answer(folder, shapes, mesh)
    if not isinstance(found, dict):
        return {"returned": "nothing" if found is None else f"a {type(found).__name__}"}
    told: dict[str, Any] = {"elements read": sum(read)}
    for name, value in found.items():
        if isinstance(value, DTensor):
            told[str(name)] = {
                "placement": str(tuple(value.placements)),
                "on mesh": value.device_mesh == mesh,
                "shape": list(value.shape),
                "local": value.to_local(),
            }
        else:
            told[str(name)] = {"placement": type(value).__name__}
    return told


def _join(file: Path, rank: int, size: int) -> None:
    store = FileStore(str(file), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)


def _count_what_is_read() -> list[int]:
    """Have every read of a checkpoint note how many elements it asks for."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader

    read: list[int] = []
    real = FileSystemReader.read_data

    def read_data(self: Any, plan: Any, planner: Any) -> Any:
        read.extend(item.lengths.numel() for item in plan.items)
        return real(self, plan, planner)

    FileSystemReader.read_data = read_data  # type: ignore[method-assign]
    return read
