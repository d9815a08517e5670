"""Inside a rank: drive answers that start or make process groups, and say what became of them.

    answer, under watch() -> spans "init as rank 0 of 2 by tcp://...", "new_group 0 1":
                             the trace has them even if the rank hangs
           -> state()     -> "rank 0 of 2, TCPStore", which `judge` compares

The programmes of notebook 01's exercises; `drive` calls them on each rank. They start worlds whose
own group is not joined (`Case.init=False`), so that the answer can do it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, PrefixStore, Store, TCPStore
from torch.distributed.distributed_c10d import _get_default_store

from helpers.jobs.ports import free_port
from helpers.ranks.inside import launch_folder, span

NO_GROUP = "no process group"
STARTS = ("start 1", "start 2")
DEADLINE = timedelta(seconds=20)
"""For whatever ranks wait for here: longer than any case may take."""
_LEFT = "nothing"


START_S = 4.0
"""How long a start may take. Tens of milliseconds are usual, and a second where DNS is slow: a
TCPStore looks up the name of each client."""
ENV = {"RES_OPTIONS": "timeout:1 attempts:1"}
"""For ranks that open a TCPStore: glibc's resolver waits 5 s by default for an answer that is lost."""


class StillWaiting(RuntimeError):
    """The answer has not come back: its rank waits for others that do not come."""


class GroupsDiffer(RuntimeError):
    """The ranks do not ask for the same groups in the same order."""


def from_env(
    answer: Callable[[], Any], rank: int, world_size: int, env: Mapping[str, str]
) -> dict[str, Any]:
    """Set the environment as a launcher does, call `answer()`, and say which group it started."""
    store = _own_store("port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    address = ("127.0.0.1", store.get("port").decode())
    os.environ.update(env, MASTER_ADDR=address[0], MASTER_PORT=address[1])
    returned = _call(answer)
    return {"returned": returned, "group": state(), "at": _env_place(address)}


def from_tcp(
    answer: Callable[[int, int, str], Any],
    rank: int,
    world_size: int,
    job: str,
    job_rank: int,
    job_size: int,
) -> dict[str, str]:
    """Start this rank's job twice, while another job starts on the same machine."""
    states = {}
    for start in STARTS:
        folder = _shared_folder() / f"{job}-{start[-1]}"
        folder.mkdir(exist_ok=True)
        _call(answer, job_rank, job_size, str(folder))
        states[start] = _with(type(_met_in()).__name__) if dist.is_initialized() else NO_GROUP
        # Both jobs' groups are open now: two servers on one port have met each other.
        meet(f"all open, {start}", rank, world_size)
        _leave_group()
    return states


def from_file(
    answer: Callable[[int, int, str, str], Any],
    rank: int,
    world_size: int,
    job_ids: Sequence[str],
) -> dict[str, str]:
    """Start two jobs one after the other, with one folder for both."""
    folder = _shared_folder() / "meeting"
    folder.mkdir(exist_ok=True)
    states: dict[str, str] = {}
    used: list[Path] = []
    for start, job_id in zip(STARTS, job_ids, strict=True):
        _call(answer, rank, world_size, str(folder), job_id)
        states[start] = _with(_file_name(folder, used)) if dist.is_initialized() else NO_GROUP
        meet(f"all open, {start}", rank, world_size)
        _leave_group()
        meet(f"all closed, {start}", rank, world_size)
    return states


def in_a_grid(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    rows: int,
    cols: int,
    x: torch.Tensor,
) -> Any:
    """Join a gloo group, then call the answer, its calls of `new_group` compared across ranks."""
    store = FileStore(str(_shared_folder() / "grid"), world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    with watch_new_group(rank, world_size):
        return answer(rank, world_size, rows, cols, x)


def _call(answer: Callable[..., Any], *args: Any) -> Any:
    """Call the answer under `watch`, in a thread: a start that hangs does so in C++, for 30 minutes."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(answer(*args))
        except BaseException as error:
            future.set_exception(error)

    with watch():
        Thread(target=run, daemon=True).start()
        try:
            return future.result(START_S)
        except TimeoutError:
            if future.done():
                raise
    raise StillWaiting(
        f"after {START_S:g} s this rank still waits inside init_process_group for ranks that do not come."
    )


@contextmanager
def watch() -> Iterator[None]:
    """Record each call of `init_process_group` as a span that says where it goes, and as whom."""
    real = dist.init_process_group

    def watched(*args: Any, **kwargs: Any) -> None:
        with span(f"init as {_identity_of(kwargs)} by {_place_of(args, kwargs)}"):
            real(*args, **kwargs)

    dist.init_process_group = watched
    try:
        yield
    finally:
        dist.init_process_group = real


@contextmanager
def watch_new_group(rank: int, world_size: int) -> Iterator[None]:
    """Record each call of `new_group`; raise GroupsDiffer where ranks ask for different groups.

    torch itself does not compare: a group's name is a counter of each rank, and ranks that count
    differently read each other's addresses, so that some hang and some get a wrong sum.
    """
    real, store, made = dist.new_group, _own_store("groups", world_size), 0

    def watched(ranks: Sequence[int] | None = None, *args: Any, **kwargs: Any) -> Any:
        nonlocal made
        asked = sorted(range(world_size) if ranks is None else ranks)
        with span(f"new_group {' '.join(map(str, asked))}"):
            if not kwargs.get("use_local_synchronization"):
                made += 1
                _compare(store, made, str(asked), rank, world_size)
            return real(ranks, *args, **kwargs)

    dist.new_group = watched
    try:
        yield
        store.set(f"{made + 1}/{rank}", _LEFT)  # whoever waits for its next call need not
    finally:
        dist.new_group = real


def _compare(store: Store, call: int, asked: str, rank: int, world_size: int) -> None:
    store.set(f"{call}/{rank}", asked)
    for other in range(world_size):
        theirs = store.get(f"{call}/{other}").decode()
        if theirs != asked:
            what = "has returned without it" if theirs == _LEFT else f"asks for {theirs}"
            raise GroupsDiffer(
                f"in call number {call} of new_group rank {rank} asks for {asked}, but rank {other} "
                f"{what}. Every rank must call new_group for every group, in the same order, also "
                "for groups that it is not in."
            )


def state() -> str:
    """Say which default group this process is in: "rank 0 of 2"; its backend if that is not gloo."""
    if not dist.is_initialized():
        return NO_GROUP
    other = "" if dist.get_backend() == "gloo" else f", backend {dist.get_backend()}"
    return f"rank {dist.get_rank()} of {dist.get_world_size()}{other}"


def _with(place: str) -> str:
    return f"{state()}, {place}"


def meet(what: str, rank: int, world_size: int) -> None:
    """Wait until every rank of the launch has come to this point."""
    store = _own_store("meet", world_size)
    store.set(f"{what}/{rank}", "here")
    store.wait([f"{what}/{other}" for other in range(world_size)], DEADLINE)


def _leave_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _shared_folder() -> Path:
    """Give the folder of this launch, which its ranks have in common."""
    return launch_folder()


def _own_store(name: str, world_size: int) -> Store:
    # A FileStore deletes its file when the last one that counts itself in has gone, so one that
    # is opened and closed in turns must count more than will ever come.
    store = FileStore(str(_shared_folder() / f"programme {name}"), 1000 * world_size)
    store.set_timeout(DEADLINE)
    return store


def _met_in() -> Store:
    """Give the store in which the default group's ranks met, without the prefixes around it."""
    store = _get_default_store()
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store


def _env_place(address: tuple[str, str]) -> str:
    if not dist.is_initialized():
        return "nowhere"
    store = _met_in()
    same = isinstance(store, TCPStore) and str(store.port) == address[1]
    return "MASTER_PORT" if same else "another port"


def _file_name(folder: Path, used: list[Path]) -> str:
    store = _met_in()
    if not isinstance(store, FileStore):
        return type(store).__name__
    path = Path(store.path).resolve()  # type: ignore[attr-defined]
    known = path in used
    used.append(path)
    if folder.resolve() not in path.parents:
        return "file elsewhere"
    return "used file" if known else "new file"


def _place_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Say in a few characters where a call of init_process_group wants to meet the others."""
    if kwargs.get("store") is not None:
        return type(kwargs["store"]).__name__
    method = kwargs.get("init_method") or (args[1] if len(args) > 1 else None) or "env://"
    if str(method).startswith("env://"):
        return f"env:// at port {os.environ.get('MASTER_PORT', '')}"
    if str(method).startswith("file://"):
        return f"file://.../{'/'.join(Path(str(method)).parts[-2:])[-30:]}"
    return str(method).split("?")[0][-30:]


def _identity_of(kwargs: Mapping[str, Any]) -> str:
    rank = kwargs.get("rank", os.environ.get("RANK", ""))
    return f"rank {rank} of {kwargs.get('world_size', os.environ.get('WORLD_SIZE', ''))}"
