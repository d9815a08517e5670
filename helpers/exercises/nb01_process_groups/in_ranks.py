"""Run answers of notebook 01 inside the ranks: groups in a grid, and process groups started by answers."""

from __future__ import annotations

import builtins
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import equal
from torch._C._distributed_c10d import FileStore, PrefixStore, TCPStore
from torch.distributed import distributed_c10d

from helpers.exercises.shared.in_ranks.groups import DEADLINE, open_check_store, watch_new_group
from helpers.jobs.ports import free_port
from helpers.ranks.rank_context import launch_folder, span


def run_in_grid(
    answer: Callable[..., Any], rank: int, world_size: int, rows: int, cols: int, x: torch.Tensor
) -> dict[str, Any]:
    """Call the answer, compare its `new_group` calls across ranks, and return both sums by name."""
    before = x.clone()
    with watch_new_group(rank, world_size):
        got = answer(rank, world_size, rows, cols, x)
    changed = (
        "" if equal(before, x) else "`x` itself was changed: make a separate clone for each sum"
    )
    if got is None:
        return {"pair": "the function returns nothing"}
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return {"pair": "return two tensors: the sum over the row, and the sum over the column"}
    shared = all(isinstance(t, torch.Tensor) and t.numel() for t in got)
    if shared and got[0].untyped_storage().data_ptr() == got[1].untyped_storage().data_ptr():
        return {"pair": "both results share the same memory: make a separate clone of `x` for each"}
    return {"pair": "", "row": got[0], "column": got[1], "x": changed}


# --- starts: the launch leaves its group unjoined, so that the answer can start a group --------------

_OTHER_JOB_WAIT = timedelta(seconds=1)
INIT_SPAN_PREFIX = "init as "
"""The first words of a start's span, which is called "init as rank 0 of 2 by tcp://127.0.0.1:40000"."""


def run_from_env(
    answer: Callable[[], Any], rank: int, world_size: int, address: str
) -> dict[str, Any]:
    """Set a free port as a launcher does, call `answer()`, and describe the group that it started."""
    store = open_check_store("port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    port = store.get("port").decode()
    os.environ.update(MASTER_ADDR=address, MASTER_PORT=port)
    with watch_init():
        returned = answer()
    met, other = _rendezvous_store(), ""
    if isinstance(met, TCPStore) and (met.host, str(met.port)) != (address, port):
        other = f"at {met.host}, port {met.port}"
    elif met is not None and not isinstance(met, TCPStore):
        other = f"in a {type(met).__name__}"
    if other:
        said = f"but MASTER_ADDR and MASTER_PORT are {address} and {port}: leave both unchanged"
        other = f"the ranks met {other}, {said}"
    return {"group": describe_group(), "met": other, "returned": returned}


def run_from_tcp(
    answer: Callable[[int, int, str], Any],
    rank: int,
    world_size: int,
    job: str,
    job_rank: int,
    job_size: int,
) -> dict[str, str]:
    """Start this rank's job twice while another job starts on the machine, each time in a separate folder."""
    found = {}
    for start in ("start 1", "start 2"):
        folder = launch_folder() / job / start
        folder.mkdir(parents=True, exist_ok=True)
        asked = _watch_ports()
        # Both jobs choose a port before either opens it. Otherwise a search for a port without a listener
        # might succeed by luck.
        meet = partial(_wait_for_other_job, job, start, world_size) if job_rank == 0 else None
        with watch_init(meet) as calls:
            answer(job_rank, job_size, str(folder))
        found[start] = describe_group()
        met = _rendezvous_store()
        if met is not None and not isinstance(met, TCPStore):
            found[start] += f", met in a {type(met).__name__}"
        elif job_rank == 0 and calls and not calls[0].endswith("store") and not asked:
            found[start] += ", on a port that rank 0 never checked to be free"
        # Keep the groups of both jobs open until here. If both jobs used one port, an error has occurred by
        # now.
        wait_for_ranks(f"all open, {start}", rank, world_size)
        if dist.is_initialized():
            dist.destroy_process_group()
    return found


def _wait_for_other_job(job: str, start: str, world_size: int) -> None:
    """Wait briefly until rank 0 of both jobs has reached this point."""
    store = open_check_store(f"ports, {start}", world_size)
    store.set(job, "here")
    with suppress(RuntimeError):
        store.wait(["job A", "job B"], _OTHER_JOB_WAIT)


def run_from_file(
    answer: Callable[[int, int, str, str], Any], rank: int, world_size: int, job_ids: Sequence[str]
) -> dict[str, str]:
    """Start several jobs one after another, all with the same folder."""
    folder = launch_folder() / "meeting"
    folder.mkdir(exist_ok=True)
    found, used, real = {}, list[Path](), builtins.hash
    # Imitate processes that were not forked, in each of which strings have different hashes.
    builtins.hash = lambda value: real((value, rank) if isinstance(value, str) else value)
    for number, job_id in enumerate(job_ids, 1):
        with watch_init():
            answer(rank, world_size, str(folder), job_id)
        met = _rendezvous_store()
        where = "" if met is None else f", met in a {type(met).__name__}"
        if isinstance(met, FileStore):
            path = Path(met.path).resolve()  # type: ignore[attr-defined]
            where = ", in a separate file"
            if folder.resolve() not in path.parents:
                where = ", in a file outside the folder, which other machines might not see"
            elif path in used:
                where = ", in the previous job's file"
            used.append(path)
        found[f"job {number}"] = describe_group() + where
        wait_for_ranks(f"all open, {number}", rank, world_size)
        met, started = None, dist.is_initialized()
        if started:
            dist.destroy_process_group()
        gc.collect()  # a store in a reference cycle would change the next job's file when it is collected
        wait_for_ranks(f"all closed, {number}", rank, world_size, started)
        if rank == 0:
            # Whether a second job connects through a file that was left behind depends on chance. `used`
            # reports it.
            for path in [path for path in folder.rglob("*") if path.is_file()]:
                path.unlink()
        wait_for_ranks(f"all removed, {number}", rank, world_size, started)
    builtins.hash = real
    return found


@contextmanager
def watch_init(before_first: Callable[[], None] | None = None) -> Iterator[list[str]]:
    """Record each start of a group, under any name, as a span with its address and rank.

    before_first: a function called before the first start that uses an address.
    """
    c10d: Any = distributed_c10d
    helper, rendezvous, calls = c10d._new_process_group_helper, c10d.rendezvous, list[str]()

    def record_start(rank: Any, size: Any, place: str) -> None:
        calls.append(f"{INIT_SPAN_PREFIX}rank {rank} of {size} by {place}")
        with span(calls[-1]):
            pass

    def recording_rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Any:
        asked = dict(part.split("=") for part in url.partition("?")[2].split("&") if "=" in part)
        if url.startswith("env://"):
            names = ("RANK", "WORLD_SIZE")
            asked = {name.lower(): os.environ[name] for name in names if name in os.environ}
        who = asked.get("rank") if rank < 0 else rank
        size = asked.get("world_size") if world_size < 0 else world_size
        if before_first is not None and not calls:
            before_first()
        record_start(who, size, _short_url(url))
        return rendezvous(url, rank, world_size, **kwargs)

    def recording_helper(size: int, rank: int, *args: Any, **kwargs: Any) -> Any:
        if not calls:
            record_start(rank, size, "a store")  # the answer passed this store
        return helper(size, rank, *args, **kwargs)

    c10d._new_process_group_helper, c10d.rendezvous = recording_helper, recording_rendezvous
    try:
        yield calls
    finally:
        c10d._new_process_group_helper, c10d.rendezvous = helper, rendezvous


def _short_url(url: str) -> str:
    if url.startswith("env://"):
        return f"env:// at port {os.environ.get('MASTER_PORT', '')}"
    place = url.partition("?")[0]
    return (
        f"file://.../{'/'.join(Path(place).parts[-2:])[-30:]}" if "file:" in place else place[-30:]
    )


def _watch_ports() -> list[str]:
    """Return a list to which each request for a port (a socket, or a store at port 0) adds an entry."""
    asked: list[str] = []
    store: Any = TCPStore
    make = store.__init__

    def audit_hook(event: str, args: tuple[Any, ...]) -> None:
        if event in {"socket.bind", "socket.connect"}:
            asked.append(event)

    def init_store(self: Any, *args: Any, **kwargs: Any) -> None:
        # A TCPStore opens its socket in C++, where no audit hook sees it.
        if kwargs.get("port", args[1] if len(args) > 1 else None) == 0:
            asked.append("port 0")
        make(self, *args, **kwargs)

    store.__init__ = init_store
    sys.addaudithook(audit_hook)
    return asked


def describe_group() -> str:
    """Describe this process's default group: "rank 0 of 2", and its backend if that is not gloo."""
    if not dist.is_initialized():
        return "no process group"
    other = "" if dist.get_backend() == "gloo" else f", backend {dist.get_backend()}"
    return f"rank {dist.get_rank()} of {dist.get_world_size()}{other}"


def wait_for_ranks(what: str, rank: int, world_size: int, started: bool | None = None) -> None:
    """Wait until every rank of the launch has reached this point, if this rank has started a group."""
    store = open_check_store("meet", world_size)
    store.set(f"{what}/{rank}", "here")
    if (
        dist.is_initialized() if started is None else started
    ):  # A rank without a group may leave, because the others see its key.
        store.wait([f"{what}/{other}" for other in range(world_size)], DEADLINE)


def _rendezvous_store() -> Any:
    """Return the store in which the default group's ranks met, without the prefix stores around it."""
    if not dist.is_initialized():
        return None
    store: Any = distributed_c10d._get_default_store()
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store
