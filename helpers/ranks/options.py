"""What is asked of ranks: each option of a launch is one field here, from `launch` to the rank.

launch(...) -> Options -> World -> Task -> rank

A `Task` is pickled: it goes from the launcher to processes that exist to obey it. Nothing that ranks say
is ever unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from helpers.ranks.cells import Source, place_of
from helpers.ranks.failures import LaunchError
from helpers.trace.events import Place

MAX_WORLD_SIZE = 256
# The group where there is a GPU for each rank: NCCL for tensors on GPUs, gloo for those on the CPU.
WITH_GPUS = "cpu:gloo,cuda:nccl"

Env = Mapping[str, str] | Sequence[Mapping[str, str]] | None


@dataclass(frozen=True)
class Options:
    """How the ranks of a world are set up and followed. See `launch` for the first ones.

    watched: records say what was in the tensors of calls, too, for a reader who will step through the run.
    others_go_on: a rank that fails or dies does not end the others; one that is done leaves, as under
    torchrun. imagined: 0, or the size of a world of which each process is one rank. own_temp: what ranks
    leave in the temp directory goes when they end. Under `launch` it stays, as under torchrun: one cell
    saves, another loads. Of checks each case must find what the first found.
    """

    world_size: int = 2
    env: Env = None
    timeout: float = 30.0
    backend: str = "auto"
    init: bool = True
    trace: bool = True
    watched: bool = False
    others_go_on: bool = False
    imagined: int = 0
    own_temp: bool = True

    @property
    def envs(self) -> tuple[Mapping[str, str], ...]:
        """The environment variables for each rank, once these options are `checked`."""
        return self.env if isinstance(self.env, tuple) else ()

    def checked(self, gpus: int | None = None) -> Options:
        """Return them with a definite backend and one environment for each rank. Else LaunchError.

        gpus: how many ranks have a GPU of their own; by default those of this machine are counted.
        """
        size, backend = check_world_size(self.world_size), self.backend
        check_timeout(self.timeout)
        if backend not in {"auto", "gloo", "nccl"}:
            raise LaunchError(f"backend must be 'auto', 'gloo' or 'nccl'; got {backend!r}.")
        if backend == "auto":
            backend = WITH_GPUS if (gpus_here() if gpus is None else gpus) >= size else "gloo"
        elif backend == "nccl" and (count := gpus_here() if gpus is None else gpus) < size:
            raise LaunchError(
                f"NCCL needs one GPU for each rank, but this machine has {count} for {size} ranks. Use "
                "backend='gloo'."
            )
        one_for_all = isinstance(self.env, Mapping) or self.env is None
        envs: list[Any] = [self.env] * size if one_for_all else list(self.env or ())
        if len(envs) != size:
            raise LaunchError(f"env needs one mapping for each of {size} ranks; got {len(envs)}.")
        texts = tuple({str(k): str(v) for k, v in (one or {}).items()} for one in envs)
        return replace(self, backend=backend, env=texts)


def check_world_size(world_size: Any) -> int:
    """Return a usable number of ranks. Raise LaunchError with what to write instead."""
    if isinstance(world_size, bool) or not isinstance(world_size, int):
        advice = f" Write {world_size}." if str(world_size).isdigit() else ""
        raise LaunchError(
            f"world_size must be a whole number of ranks; got {world_size!r}, "
            f"a {type(world_size).__name__}.{advice}"
        )
    if not 1 <= world_size <= MAX_WORLD_SIZE:
        no_gpus = " Without GPUs, torch.cuda.device_count() is 0." if world_size == 0 else ""
        raise LaunchError(
            f"world_size must be from 1 to {MAX_WORLD_SIZE}; got {world_size}.{no_gpus}"
        )
    return world_size


def check_timeout(timeout: Any) -> float:
    """Return a usable number of seconds. Raise LaunchError with what to write instead."""
    if isinstance(timeout, (int, float)) and timeout > 0:
        return timeout
    raise LaunchError(f"timeout must be more than 0 seconds; got {timeout!r}.")


def has_gpu_driver() -> bool:
    """Whether there may be NVIDIA GPUs. Unlike torch, it asks no driver: a fork would inherit the answer."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


def gpus_here() -> int:
    """Return how many NVIDIA GPUs this machine has. Do not call it in a rank server."""
    if not has_gpu_driver():
        return 0  # and torch need not be imported
    import torch

    return torch.cuda.device_count()  # does not start CUDA here: that would make later forks unsafe


@dataclass(frozen=True)
class Caller:
    """What the launching process does for its ranks.

    place_of: names a line for the reader, from what a rank calls its file, line and function. reply: answers
    what ranks ask by `ask_launcher`, in plain JSON; what it raises is the asking rank's failure.
    """

    place_of: Callable[[str, int, str], Place] = place_of
    reply: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Identity:
    """What a rank learns with its first task: who it is, and where it runs.

    env: to be set; unset: names to be taken away. folder: of its launch. temp: for temporary files; "": the
    launcher's. most_result: bytes of a value that it may return. store: host and port of the TCPStore at
    which its group meets; "" for a file in `folder`.
    """

    rank: int
    options: Options
    env: Mapping[str, str]
    unset: Sequence[str]
    folder: str
    temp: str
    cwd: str
    path: Sequence[str]
    most_result: int
    store: str = ""


@dataclass(frozen=True)
class Task:
    """What ranks are to do: call the function in their payload, or run a cell's `source`.

    shared: how many bytes of the payload all ranks are given. settings: they begin with what cells have set
    for their process. cells: those from which code is sent, by file, so that a rank can show its lines.
    rewind: the launcher has read all records; begin at the front of the log again.
    """

    shared: int = 0
    settings: bool = False
    cells: Mapping[str, Source] = field(default_factory=dict)
    source: str | None = None
    file: str = ""
    rewind: bool = False
    identity: Identity | None = None
