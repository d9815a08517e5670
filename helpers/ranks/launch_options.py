"""The options of a launch. Each option is a field here, and is passed from `launch` to the rank.

launch(...) -> Options -> World -> Task -> rank

A `Task` may be pickled, because the launcher sends it to processes that exist only to run it. Data
from ranks is never unpickled.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from helpers.ranks.cells import Source, place_of
from helpers.ranks.failures import LaunchError
from helpers.trace.events import Place

MAX_WORLD_SIZE = 256
# The backend if there is a GPU for each rank: NCCL for tensors on GPUs, gloo for tensors on the CPU.
GPU_BACKEND = "cpu:gloo,cuda:nccl"

Env = Mapping[str, str] | Sequence[Mapping[str, str]] | None


@dataclass(frozen=True)
class Options:
    """Options for setting up and following the ranks of a world. See `launch` for the first fields.

    Attributes:
        record_values: Whether records also contain values of the calls' tensors, for a reader who steps
            through the run.
        keep_others_running: Whether the other ranks continue if a rank fails or dies. A rank whose function
            has returned exits at once, as under torchrun.
        imagined: 0, or the size of an imagined world in which each process is one rank.
        exit_returns: Whether a rank whose process exits with code 0 counts as returned, like a script under
            torchrun.
        horizon_s: A time in seconds. If `timeout` is longer, a wait in torch that ends much later than this
            time counts as endless.
        keeps_last_calls: Whether the trace of a run with very many calls contains the last calls instead of
            the first calls.
        own_temp: Whether the ranks' files in the temp directory are removed when the ranks end, so that each
            case of a check starts with the same files. Under `launch`, these files are kept, as under
            torchrun, because one cell may save a file that another cell loads.
    """

    world_size: int = 2
    env: Env = None
    timeout: float = 30.0
    backend: str = "auto"
    init: bool = True
    trace: bool = True
    record_values: bool = False
    keep_others_running: bool = False
    imagined: int = 0
    exit_returns: bool = False
    horizon_s: float = math.inf
    keeps_last_calls: bool = False
    own_temp: bool = True

    @property
    def envs(self) -> tuple[Mapping[str, str], ...]:
        """The environment variables for each rank, after `resolve`."""
        return self.env if isinstance(self.env, tuple) else ()

    def resolve(self, gpus: int | None = None) -> Options:
        """Return these options with a definite backend and one environment for each rank.

        Args:
            gpus: Number of ranks that can each have a GPU. By default the GPUs of this machine are counted.

        Raises:
            LaunchError: An option has an impossible value.
        """
        size, backend = check_world_size(self.world_size), self.backend
        check_timeout(self.timeout)
        if backend not in {"auto", "gloo", "nccl"}:
            raise LaunchError(f"backend must be 'auto', 'gloo' or 'nccl'; got {backend!r}.")
        if backend == "auto":
            backend = GPU_BACKEND if (count_gpus() if gpus is None else gpus) >= size else "gloo"
        elif backend == "nccl" and (count := count_gpus() if gpus is None else gpus) < size:
            raise LaunchError(
                f"NCCL needs one GPU for each rank, but this machine has {count} for {size} ranks. Use "
                "backend='gloo'."
            )
        is_same = isinstance(self.env, Mapping) or self.env is None
        envs: list[Any] = [self.env] * size if is_same else list(self.env or ())
        if len(envs) != size:
            raise LaunchError(f"env needs one mapping for each of {size} ranks; got {len(envs)}.")
        as_strings = tuple({str(k): str(v) for k, v in (env or {}).items()} for env in envs)
        return replace(self, backend=backend, env=as_strings)


def check_world_size(world_size: Any) -> int:
    """Return the number of ranks if it is usable. Otherwise raise LaunchError with advice."""
    if isinstance(world_size, bool) or not isinstance(world_size, int):
        advice = f" Write {world_size}." if str(world_size).isdigit() else ""
        raise LaunchError(
            f"world_size must be a whole number of ranks; got {world_size!r}, "
            f"a {type(world_size).__name__}.{advice}"
        )
    if not 1 <= world_size <= MAX_WORLD_SIZE:
        no_gpus = (
            " If you passed torch.cuda.device_count(), it is 0 without GPUs."
            if world_size == 0
            else ""
        )
        raise LaunchError(
            f"world_size must be from 1 to {MAX_WORLD_SIZE}; got {world_size}.{no_gpus}"
        )
    return world_size


def check_timeout(timeout: Any) -> float:
    """Return the number of seconds if it is usable. Otherwise raise LaunchError."""
    if isinstance(timeout, (int, float)) and timeout > 0:
        return timeout
    raise LaunchError(f"timeout must be more than 0 seconds; got {timeout!r}.")


def has_gpu_driver() -> bool:
    """Return whether there may be NVIDIA GPUs, without using a driver, whose state a fork would inherit."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


def count_gpus() -> int:
    """Return the number of NVIDIA GPUs in this machine. Must not be called in a rank server."""
    if not has_gpu_driver():
        return 0  # without importing torch
    import torch

    return torch.cuda.device_count()  # Does not start CUDA, which would make later forks unsafe.


@dataclass(frozen=True)
class Caller:
    """Functions of the launching process that serve its ranks.

    Attributes:
        place_of: A function that returns a line's place for readers, from the file, line and function
            reported by a rank.
        reply: A function that answers ranks' questions (`ask_launcher`), in plain JSON. If it raises an
            exception, the asking rank fails.
        show_output: A function that receives a rank's number and the bytes that the rank has just printed.
    """

    place_of: Callable[[str, int, str], Place] = place_of
    reply: Callable[[Any], Any] | None = None
    show_output: Callable[[int, bytes], None] | None = None


@dataclass(frozen=True)
class Identity:
    """Data that a rank receives with its first task: its number, its options, and its surroundings.

    Attributes:
        env: Environment variables to set.
        unset: Names of environment variables to remove.
        folder: The launch's folder.
        temp: The folder for temporary files; "" for the launcher's folder.
        most_result: The limit for a returned value, in bytes.
        store: Host and port of the TCPStore where the rank's group meets; "" for a file in `folder`.
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
    """A task for ranks: to call the function in their payload, or to run a cell's `source`.

    Attributes:
        shared: Number of bytes of the payload that are the same for all ranks.
        has_settings: Whether the payload begins with the settings that cells have made for their process.
        cells: {file: cell} for the cells whose code is sent, so that a rank can show their lines.
        rewind_logs: Whether the launcher has read all records, so that the rank writes its log from the
            start.
    """

    shared: int = 0
    has_settings: bool = False
    cells: Mapping[str, Source] = field(default_factory=dict)
    source: str | None = None
    file: str = ""
    rewind_logs: bool = False
    identity: Identity | None = None
