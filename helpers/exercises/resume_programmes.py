"""What runs around `checkpoint_and_resume` and `reshard_checkpoint`: a training that is killed, two jobs.

The training here and its simulation in `resume_cases` use the same `Training`, so that the curve of a
training that nobody disturbed is known without the answer.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import FileStore

from helpers.checks.scripts import Source, compose, under_fork, under_torchrun
from helpers.exercises.start_groups import meet
from helpers.ranks.inside import launch_folder

_HERE = "helpers.exercises.resume_programmes"
CURE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
REAL_S = 60.0


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
    """Run a training that dies at step dies[0], and, if there is a second, while it saves."""
    script = compose(answer, f"{_HERE}:train", (seed, epochs, steps, every, tuple(dies)))
    if real:
        return under_torchrun(script, nproc, max_restarts=len(dies), env=CURE, timeout_s=REAL_S)
    importlib.import_module("torch._dynamo")  # once, here: every optimizer's first user imports it
    return under_fork(script, nproc, max_restarts=len(dies), timeout_s=15)


def train(
    answer: Callable[..., Any],
    seed: int,
    epochs: int,
    steps: int,
    every: int,
    dies: Sequence[int],
) -> dict[str, Any]:
    """Call the answer in a worker; be killed by SIGKILL where this attempt has to."""
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    training = Training(seed, size)
    torch.manual_seed(seed + rank)
    calls: list[tuple[int, int]] = []

    def train_step(epoch: int, step: int) -> float:
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

    folder = Path(sys.argv[0]).resolve().parent / "checkpoints"
    folder.mkdir(exist_ok=True)
    saved = _note_saves(folder)
    if attempt == 1 and len(dies) > 1:
        _die_in_save(dies[1], folder)
    losses = answer(
        training.model, training.optimizer, train_step, epochs, steps, every, str(folder)
    )
    dist.destroy_process_group()
    first = calls[0] if calls else None
    return {"losses": losses, "first": first, "attempt": attempt, "saves": len(saved)}


def _note_saves(folder: Path) -> list[str]:
    """Have torch.save note each file that this process writes in the folder."""
    real: Callable[..., None] = torch.save
    saved: list[str] = []

    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        path = f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", None)
        if path is not None and Path(path).resolve().is_relative_to(folder):
            saved.append(str(path))
        real(obj, f, *args, **kwargs)

    torch.save = save
    return saved


def _die_in_save(count: int, folder: Path) -> None:
    """Have this process killed when save number `count` is half written, or a file was removed."""
    real, saves = torch.save, 0

    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal saves
        real(obj, f, *args, **kwargs)
        path = f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", None)
        if path is None:  # in memory: pickling a tensor does so
            return
        saves += 1
        if saves == count:
            os.truncate(path, os.path.getsize(path) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    def removing(remove: Callable[..., None]) -> Callable[..., None]:
        def remove_and_die(path: Any, *args: Any, **kwargs: Any) -> None:
            remove(path, *args, **kwargs)
            if Path(path).resolve().is_relative_to(folder):
                os.kill(os.getpid(), signal.SIGKILL)  # what is removed must not be needed any more

        return remove_and_die

    torch.save = save
    os.remove, os.unlink = removing(os.remove), removing(os.unlink)


def reshard(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
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
        state = {
            name: distribute_tensor(whole(shape), mesh, [Shard(0)])
            for name, shape in shapes.items()
        }
        save(state, checkpoint_id=folder)
        dist.destroy_process_group()
    meet("saved", rank, world_size)
    if rank >= after:
        return None
    _join(shared / "second job", rank, after)
    read = _count_what_is_read()
    found = answer(folder, shapes, init_device_mesh("cpu", (after,)))
    if not isinstance(found, dict):
        return {"returned": repr(type(found).__name__)}
    told: dict[str, Any] = {"elements read": sum(read)}
    for name, value in found.items():
        if isinstance(value, DTensor):
            told[str(name)] = {
                "placement": str(tuple(value.placements)),
                "shape": list(value.shape),
                "local": value.to_local(),
            }
        else:
            told[str(name)] = {"placement": type(value).__name__}
    return told


def whole(shape: Sequence[int]) -> torch.Tensor:
    """Give the tensor that was saved under a shape: its elements count up from 1."""
    count = 1
    for size in shape:
        count *= size
    return torch.arange(1, count + 1, dtype=torch.float32).reshape(tuple(shape))


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
