"""What runs around the answers of notebook 18: agents, workers, environments, planted failures."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import FileStore

from helpers.checks.scripts import (
    ROOT,
    Source,
    compose,
    endings_of,
    error_file,
    report,
    run_under_torchrun,
    under_fork,
    under_torchrun,
)
from helpers.jobs.owned import Owned
from helpers.jobs.ports import held_port
from helpers.jobs.torchrun_command import environment_of
from helpers.ranks.inside import launch_folder

AGENTS_S = 40.0
"""How long real agents may take: 2 to 5 s are usual, but thirty learners may share the machine."""
PATIENCE_S = 5.0
NAMES = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "TORCHELASTIC_RESTART_COUNT",
)


def read_env(
    answer: Source, rank: int, world_size: int, places: Sequence[Mapping[str, str]] | None
) -> dict[str, Any]:
    """Call the answer in each of these environments, or, without any, in two real workers."""
    if places is None:
        return under_torchrun(compose(answer, call, ()), 2, timeout_s=AGENTS_S)
    function = answer.build()
    values = []
    for place in places:
        for name in NAMES:
            os.environ.pop(name, None)
        os.environ.update(place)
        values.append(function())
    return {"values": values}


def call(answer: Callable[[], Any]) -> Any:
    """Call the answer in a worker."""
    return answer()


def two_nodes(
    answer: Source, rank: int, world_size: int, script: str, nproc: int, address: str, port: int
) -> dict[str, Any]:
    """Ask for the two commands and read them as torchrun would; start them where no port is given."""
    if not port:
        return _two_real_nodes(answer, nproc)
    commands = answer.build()(script, nproc, address, port)
    read = [_as_torchrun_reads(words) for words in _list(commands)]
    return {"values": [{"commands": _plain(commands), "read": read}]}


def _two_real_nodes(answer: Source, nproc: int) -> dict[str, Any]:
    """Give the answer's two commands to two agents on this machine."""
    script = compose(answer, where_am_i, ())
    with held_port() as port, Owned() as owned:
        commands = answer.build()(str(script), nproc, "127.0.0.1", port)
        env = environment_of({"PYTHONPATH": ROOT}, owned.folder)
        for node, words in enumerate(commands):
            argv = [sys.executable, "-m", "torch.distributed.run", *words[1:]]
            owned.start(f"node{node}", argv, env=env, cwd=script.parent)
        late = not owned.wait(AGENTS_S)
        exits = {} if late else dict(enumerate(owned.exits.values()))
        endings = {"late": late, "exits": exits}
        return report(script.parent, 2 * nproc, endings, [""] * (2 * nproc))


def _as_torchrun_reads(words: Any) -> dict[str, Any]:
    """Parse one command with torchrun's own parser; `problem` says why it cannot be."""
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        return {"problem": "not a list of strings"}
    if not words or words[0] != "torchrun":
        return {"problem": "its first word is not 'torchrun'"}
    from torch.distributed.run import get_args_parser

    said = StringIO()
    try:
        with redirect_stderr(said):
            found = get_args_parser().parse_args(list(words[1:]))
    except SystemExit:
        return {"problem": f"torchrun says: {' '.join(said.getvalue().strip().splitlines()[-1:])}"}
    return {name: _plain(value) for name, value in vars(found).items()}


def where_am_i(answer: object) -> dict[str, Any]:
    """Join the group in a worker; say where this is, and what all ranks add up to."""
    dist.init_process_group("gloo")
    total = torch.tensor(dist.get_rank())
    dist.all_reduce(total)
    found = {name: int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "GROUP_RANK")}
    dist.destroy_process_group()
    return {**found, "sum of ranks": int(total)}


ERRORS: dict[str, Callable[[str], Exception]] = {
    error.__name__: error for error in (ValueError, KeyError, RuntimeError, FileNotFoundError)
}
"""What main may raise."""


def failing(
    answer: Source,
    rank: int,
    world_size: int,
    nproc: int,
    bad: Sequence[int],
    kind: str,
    text: str,
    real: bool,
) -> dict[str, Any]:
    """Let workers run a main function by the answer; that of the ranks in `bad` raises."""
    script = compose(answer, run_main, (list(bad), kind, text))
    if real:
        # the agent itself reads the error file: what counts is what it reports of it
        run = run_under_torchrun(script, nproc, timeout_s=AGENTS_S)
        found = report(script.parent, nproc, endings_of(run), run.output)
        told = {worker.rank: worker.error for worker in run.workers}
    else:
        found = under_fork(script, nproc, grace_s=5.0)
        told = {r: _read_error(error_file(script, r)) for r in range(nproc)}
    planted = str(ERRORS[kind](text))
    for r, error in enumerate(found["errors"]):
        if error is not None and r in bad and (error["kind"], error["message"]) == (kind, planted):
            found["errors"][r] = None  # which is meant to come through
    values = [
        {
            "calls of main": len(list(script.parent.glob(f"called-{r}-*"))),
            "exit code": int(found["exits"].get(r, 0) != 0),
            "error file": told.get(r, ""),
            "other files": _elsewhere(script.parent / f"{r}"),
        }
        for r in range(nproc)
    ]
    if not any(found["errors"]):
        found["exits"] = {}
    return {**found, "values": values}


def run_main(
    answer: Callable[[Callable[[], None]], Any], bad: Sequence[int], kind: str, text: str
) -> None:
    """Hand the answer a main function which raises on the ranks in `bad`."""
    rank, folder = int(os.environ["RANK"]), Path(sys.argv[0]).parent
    own = folder / str(rank)  # what else is written shows here
    own.mkdir(exist_ok=True)
    os.chdir(own)
    tempfile.tempdir = str(own)

    def main() -> None:
        tempfile.mkstemp(prefix=f"called-{rank}-", dir=folder)
        if rank in bad:
            _wait_for_the_others(folder)  # an agent ends them once one has failed
            raise ERRORS[kind](text)

    answer(main)


def _elsewhere(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    return f"writes other files: {', '.join(names)}" if names else ""


def _wait_for_the_others(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    names = [f"called-{rank}-*" for rank in range(int(os.environ["WORLD_SIZE"]))]
    while not all(any(folder.glob(name)) for name in names) and time.monotonic() < deadline:
        time.sleep(0.01)


def _read_error(path: Path) -> str:
    try:
        message = json.loads(path.read_text())["message"]
        return str(message if isinstance(message, str) else message["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _plain(value: Any) -> Any:
    """Give what the answer returned, in types that can travel."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)[:200]


# --- a training that is killed --------------------------------------------------------------------

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
    """Run a training that dies in step dies[0] and, if there is a dies[1], at that event of its saves."""
    script = compose(answer, train, (seed, epochs, steps, every, tuple(dies)))
    if real:
        return under_torchrun(script, nproc, max_restarts=len(dies), env=CURE, timeout_s=REAL_S)
    found = under_fork(script, nproc, max_restarts=len(dies), timeout_s=15)
    noted = script.parent / "died"
    died = json.loads(noted.read_text()) if noted.exists() else []
    for value in found["values"]:
        if isinstance(value, dict):
            value["died"] = died
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

    script = Path(sys.argv[0]).resolve()
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
    steps were done, and the event. Files outside the folder are on another disk, as they are in a cluster.
    """

    folder: Path
    last: int
    noted: Path
    written: list[str] = field(default_factory=list)
    done: Callable[[], int] = int
    _events: int = 0

    def watch(self) -> None:
        """Put this watch around everything that writes, renames or removes files."""
        torch.save = self._saving(torch.save)
        builtins.open = io.open = self._opening(io.open)  # os.fdopen and tempfile call it, too
        for name in ("rename", "replace"):
            setattr(os, name, self._moving(getattr(os, name)))
        for name in ("remove", "unlink"):
            setattr(os, name, self._removing(getattr(os, name)))
        shutil.copyfile = self._copying(shutil.copyfile)

    def _is_inside(self, path: Any) -> bool:
        return isinstance(path, (str, os.PathLike)) and Path(path).resolve().is_relative_to(
            self.folder
        )

    def _happens(self, what: str, path: Any) -> None:
        """Count an event, and die of it if it is the one. `path` is left half written, if it is given."""
        self._events += 1
        if self._events == self.last:
            if path is not None:
                os.truncate(path, os.path.getsize(path) // 2)
            self.noted.write_text(json.dumps([self.done(), what]))
            os.kill(os.getpid(), signal.SIGKILL)

    def _saving(self, real: Callable[..., None]) -> Callable[..., None]:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            real(obj, f, *args, **kwargs)
            if self._is_inside(f):
                self.written.append(str(f))
                self._happens("half a file", f)

        return save

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            found = real(file, mode, *args, **kwargs)
            path = os.readlink(f"/proc/self/fd/{found.fileno()}") if set(mode) & set("wax+") else ""
            if path and self._is_inside(path):
                self.written.append(path)
                close = found.close

                def closing() -> None:
                    if not found.closed:
                        found.flush()
                        self._happens("half a file", path)
                    close()

                found.close = closing  # `with` and the collector call it, too
            return found

        return opened

    def _moving(self, real: Callable[..., None]) -> Callable[..., None]:
        def move(old: Any, new: Any, *args: Any, **kwargs: Any) -> None:
            if self._is_inside(new) and not self._is_inside(old):
                raise OSError(errno.EXDEV, "Invalid cross-device link", str(old), None, str(new))
            real(old, new, *args, **kwargs)
            if self._is_inside(new):
                self._happens("a new name", None)

        return move

    def _removing(self, real: Callable[..., None]) -> Callable[..., None]:
        def remove(path: Any, *args: Any, **kwargs: Any) -> None:
            real(path, *args, **kwargs)
            if self._is_inside(path):
                self._happens("a file removed", None)

        return remove

    def _copying(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def copy(old: Any, new: Any, **kwargs: Any) -> Any:
            real(old, new, **kwargs)
            if self._is_inside(new):
                self.written.append(str(new))
                self._happens("half a file", new)
            return new

        return copy


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
