"""launch(): run a function on real ranks, watch them, and give back what happened.

fn, args --payload--> World.start --> World.give --> pump ... pump --> Run
                                          |             |
                                      Watcher       live view
whatever happens: World.end, which leaves no process, descriptor or file behind
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from helpers.ranks import payload as payloads
from helpers.ranks.cells import in_kernel, place_of
from helpers.ranks.connection import Connection
from helpers.ranks.display import Display, Quiet
from helpers.ranks.failures import LaunchError, RankFailure, Stopped
from helpers.ranks.follow import follow
from helpers.ranks.inside import inside_rank
from helpers.ranks.run import Run
from helpers.ranks.world import Setting, World
from helpers.trace.events import Place

WITH_GPUS = "cpu:gloo,cuda:nccl"
"""The group where there is a GPU for each rank: NCCL for tensors on GPUs, gloo for those on the CPU."""


def launch(
    fn: Callable[..., Any],
    world_size: int = 2,
    *,
    args: Sequence[Any] = (),
    per_rank: Sequence[Sequence[Any]] | None = None,
    env: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None,
    timeout: float = 30.0,
    backend: str = "auto",
    init: bool = True,
    on_failure: str = "raise",
    trace: bool = True,
) -> Run:
    """Call `fn(rank, world_size, *args, *per_rank[rank])` on each of `world_size` real ranks.

    Each rank is a process of its own, which has joined the default process group (unless
    `init=False`). `env`: environment variables, one mapping for all or one for each rank, set before
    the group is joined. `timeout`: seconds that the whole launch may take. `backend`: "gloo", "nccl",
    or "auto": where there are at least `world_size` GPUs, NCCL for tensors on GPUs (and gloo for those
    on the CPU), else gloo. `on_failure`: "raise", or "return" (the Run carries its failure).
    `trace=False` records no calls and so explains no deadlock; use it to measure latencies of
    microseconds.

    Raise LaunchError or CannotSend when nothing could be started, and otherwise a RankFailure:
    RankFailed, RankDied, Deadlock or RankTimeout, each with what was seen as `.run`.
    """
    if on_failure not in {"raise", "return"}:
        raise LaunchError(f"on_failure must be 'raise' or 'return'; got {on_failure!r}.")
    display = Display() if in_kernel() else Quiet()
    run = run_on_ranks(
        fn,
        world_size,
        args=args,
        per_rank=per_rank,
        env=env,
        timeout=timeout,
        backend=backend,
        init=init,
        trace=trace,
        display=display,
    )
    if run.failure is not None and on_failure == "raise":
        display.keep(run)
        raise run.failure
    display.remember(run)
    return run


def run_on_ranks(
    fn: Callable[..., Any],
    world_size: int,
    *,
    args: Sequence[Any] = (),
    per_rank: Sequence[Sequence[Any]] | None = None,
    env: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None,
    timeout: float = 30.0,
    backend: str = "auto",
    init: bool = True,
    trace: bool = True,
    display: Quiet | None = None,
    name_place: Callable[[str, int, str], Place] = place_of,
    connection: Connection | None = None,
) -> Run:
    """Do what `launch` does, but always return the Run: what checks and graders call.

    name_place: names a line of the code that ran for the reader, as a place in their notebook.
    connection: the rank server to use, by default this process's own.
    """
    began = time.monotonic()
    payloads.check_world_size(world_size)
    if connection is None:
        refuse_where_ranks_must_not_start()
    load = payloads.make_payload(fn, world_size, args, per_rank)
    setting = make_setting(world_size, backend, init, trace, env)
    setting = replace(setting, place_of=name_place)
    display = display or Quiet()
    for attempt in (1, 2):
        server = connection or connect()
        with server.lock:
            notes = taken_notes(server)
            server.wait_until_ready()
            world, failure = _one_world(server, setting, load, timeout, display)
        never_began = world.server_gone and not any(member.pid for member in world.members)
        if connection or not (never_began and attempt == 1):
            break
    return make_run(world, failure, time.monotonic() - began, notes)


def _one_world(
    connection: Connection,
    setting: Setting,
    load: payloads.Payload,
    timeout: float,
    display: Quiet,
) -> tuple[World, RankFailure | None]:
    """Start ranks, give them their task, watch them, end them."""
    connection.site.starting()
    world = World(connection, setting)
    end = world.end
    with one_stop():  # so at most one KeyboardInterrupt comes, and it finds a `finally` behind it
        try:
            try:
                world.start()
                heads = [{"do": "call", "shared": len(load.shared)}] * setting.world_size
                world.give(heads, [(load.shared, own) for own in load.own])
                failure = follow(world, timeout, display)
                if failure is None:
                    world.traffic = connection.site.traffic([m.pid for m in world.members])
                    end = world.dismiss
            finally:
                end()
            return world, failure
        except KeyboardInterrupt:
            display.clear()  # it says that the ranks run
            raise Stopped(setting.world_size) from None
        finally:
            if not world.ended:
                world.end()


def make_run(
    world: World, failure: RankFailure | None, seconds: float, notes: tuple[str, ...]
) -> Run:
    """Put what a world's ranks said into a Run, once the world has ended."""
    run = Run(
        world.setting.world_size,
        [member.value for member in world.members],
        [member.output for member in world.members],
        world.collector.trace(),
        failure,
        world.setting.backend if world.setting.init else "",
        seconds,
        notes,
        world.traffic,
    )
    if failure is not None:
        failure.run = run
    return run


def make_setting(
    world_size: int,
    backend: str,
    init: bool,
    trace: bool,
    env: Mapping[str, str] | Sequence[Mapping[str, str]] | None,
) -> Setting:
    """Check and complete what the caller asked for. Raise LaunchError with what to write instead."""
    if backend not in {"auto", "gloo", "nccl"}:
        raise LaunchError(f"backend must be 'auto', 'gloo' or 'nccl'; got {backend!r}.")
    if backend == "auto":
        backend = WITH_GPUS if _gpus() >= world_size else "gloo"
    elif backend == "nccl" and _gpus() < world_size:
        raise LaunchError(
            f"NCCL needs one GPU for each rank: this machine has {_gpus()}, and {world_size} ranks "
            "were asked for. Use backend='gloo'."
        )
    envs = [env] * world_size if isinstance(env, Mapping) or env is None else list(env)
    if len(envs) != world_size:
        raise LaunchError(f"env needs one mapping for each of {world_size} ranks; got {len(envs)}.")
    texts = tuple({str(k): str(v) for k, v in (one or {}).items()} for one in envs)
    return Setting(world_size, backend, init, trace, texts)


def _gpus() -> int:
    """Count GPUs without starting CUDA in this process: that would make later forks unsafe."""
    if not os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/dxg"):
        return 0
    import torch

    return torch.cuda.device_count()


def refuse_where_ranks_must_not_start() -> None:
    """Raise LaunchError inside a rank, a multiprocessing child or a torchrun worker."""
    import multiprocessing

    if inside_rank():
        raise LaunchError("launch() was called inside a rank. Call it from the notebook.")
    # While a spawned child imports the main script again, it does not know its parent yet.
    importing = getattr(multiprocessing.current_process(), "_inheriting", False)
    if multiprocessing.parent_process() is not None or importing:
        raise LaunchError(
            "launch() was called in a child of multiprocessing, which imports the main script again. "
            "Put the call under `if __name__ == '__main__':`."
        )
    if "TORCHELASTIC_RUN_ID" in os.environ:
        raise LaunchError("launch() was called in a worker of torchrun, which is a rank already.")


class _Held:
    """The one connection of this process, and what to tell about it at the next launch."""

    connection: Connection | None = None
    note: str = ""


def connect() -> Connection:
    """Give this process's rank server, starting one if there is none or if it has gone."""
    held = _Held.connection
    if held is not None and (held.gone or not held.alive()):
        if held.owner == os.getpid():
            _Held.note = "the rank server had been ended from outside; a new one was started"
            held.close()
        held = None
    if held is None:
        held = _Held.connection = Connection()
    return held


def disconnect() -> None:
    """End this process's rank server, if there is one. The next launch starts another."""
    if _Held.connection is not None:
        _Held.connection.close()
        _Held.connection = None


def start_in_background() -> None:
    """Start the rank server, without waiting for it, where a learner will soon need it: a kernel."""
    try:
        refuse_where_ranks_must_not_start()
    except LaunchError:
        return
    if in_kernel():
        connect()


def taken_notes(connection: Connection) -> tuple[str, ...]:
    """Give what the reader of the next Run should know, once."""
    notes, _Held.note = (_Held.note,) if _Held.note else (), ""
    return notes


@contextmanager
def one_stop() -> Iterator[None]:
    """Let the first Stop (or Ctrl-C) raise KeyboardInterrupt and ignore all that follow it.

    Who presses Stop again and again must not interrupt the ending of the ranks.
    """
    pressed = False

    def once(number: int, frame: object) -> None:
        nonlocal pressed
        if not pressed:
            pressed = True
            raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGINT, once)
    except ValueError:  # not in the main thread: no KeyboardInterrupt comes here
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
