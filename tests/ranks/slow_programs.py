"""Successful programs, one for each way to keep other ranks waiting, for `delay` seconds each.

None of them may be called a deadlock. The ones in `STOPPED` must be stopped from outside while they run.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import multiprocessing
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from helpers.ranks.rank_context import launch_folder

Program = Callable[[int, int, float], object]

SLOW: dict[str, tuple[Program, bool]] = {}
"""name -> (program, whether its group must be joined before)"""


def slow(init: bool = True) -> Callable[[Program], Program]:
    def put(work: Program) -> Program:
        SLOW[work.__name__] = work, init
        return work

    return put


def _meet(work: Callable[[], object] | None = None) -> None:
    """Do the work on rank 0 while the other ranks wait for it."""
    if work is not None and dist.get_rank() == 0:
        work()
    dist.barrier()


def _folder() -> Path:
    """Return the folder shared by all ranks of a world."""
    return launch_folder()


def _send() -> None:
    dist.send(torch.ones(1), 0)


# --- threads ------------------------------------------------------------------------------------------


@slow()
def timer_that_sends(rank: int, n: int, delay: float) -> None:
    if rank == 0:
        dist.recv(torch.ones(1), 1)
    elif rank == 1:
        timer = threading.Timer(delay, _send)
        timer.start()
        timer.join()


@slow()
def queue_with_a_timeout_then_send(rank: int, n: int, delay: float) -> None:
    if rank == 0:
        dist.recv(torch.ones(1), 1)
    elif rank == 1:
        try:
            queue.Queue[int]().get(timeout=delay)
        except queue.Empty:
            _send()


@slow()
def event_with_a_timeout(rank: int, n: int, delay: float) -> None:
    _meet(lambda: threading.Event().wait(delay))


@slow()
def event_that_a_sleeper_sets(rank: int, n: int, delay: float) -> None:
    done = threading.Event()

    def later() -> None:
        time.sleep(delay)
        done.set()

    threading.Thread(target=later, daemon=True).start()
    _meet(done.wait)


@slow()
def barrier_of_threads(rank: int, n: int, delay: float) -> None:
    both = threading.Barrier(2)

    def later(barrier: threading.Barrier) -> None:
        time.sleep(delay)
        barrier.wait()

    threading.Thread(target=later, args=(both,), daemon=True).start()
    _meet(both.wait)


@slow()
def join_of_a_thread_that_sleeps(rank: int, n: int, delay: float) -> None:
    def nap() -> None:
        time.sleep(delay)

    thread = threading.Thread(target=nap)
    thread.start()
    _meet(thread.join)


@slow()
def join_of_a_thread_that_counts(rank: int, n: int, delay: float) -> None:
    seen: list[float] = []

    def beat() -> None:
        for _ in range(5):
            time.sleep(delay / 5)
            seen.append(time.monotonic())

    thread = threading.Thread(target=beat)
    thread.start()
    _meet(thread.join)


@slow()
def heartbeat_that_sends_in_the_end(rank: int, n: int, delay: float) -> None:
    if rank == 0:
        dist.recv(torch.ones(1), 1)
    elif rank == 1:

        def beat() -> None:
            for _ in range(5):
                time.sleep(delay / 5)
            _send()

        threading.Thread(target=beat, daemon=True).start()
        threading.enumerate()[-1].join()


class _Mail:
    def append(self, value: float) -> None:
        _send()


@slow()
def thread_whose_list_sends(rank: int, n: int, delay: float) -> None:
    def beat(seen: Any) -> None:
        time.sleep(delay)
        seen.append(1)

    if rank == 0:
        dist.recv(torch.ones(1), 1)
    elif rank == 1:
        threading.Thread(target=beat, args=(_Mail(),)).start()
    dist.barrier()


@slow()
def pool_with_a_sleeping_job(rank: int, n: int, delay: float) -> None:
    with ThreadPoolExecutor(2) as pool:
        _meet(pool.submit(time.sleep, delay).result)


@slow()
def condition_that_is_notified_late(rank: int, n: int, delay: float) -> None:
    ready = threading.Condition()

    def later() -> None:
        time.sleep(delay)
        with ready:
            ready.notify_all()

    def wait() -> None:
        with ready:
            threading.Thread(target=later).start()
            ready.wait()

    _meet(wait)


@slow()
def asyncio_that_sleeps(rank: int, n: int, delay: float) -> None:
    _meet(lambda: asyncio.run(asyncio.sleep(delay)))


@slow()
def asyncio_process_in_a_thread(rank: int, n: int, delay: float) -> None:
    async def main() -> None:
        process = await asyncio.create_subprocess_exec("sleep", str(delay))
        await process.wait()

    def work() -> None:
        thread = threading.Thread(target=lambda: asyncio.run(main()))
        thread.start()
        thread.join()

    _meet(work)


# --- processes ------------------------------------------------------------------------------------------


@slow()
def process_in_a_thread(rank: int, n: int, delay: float) -> None:
    def run() -> None:
        subprocess.run(["sleep", str(delay)], capture_output=True, check=True)

    thread = threading.Thread(target=run)
    thread.start()
    _meet(thread.join)


@slow()
def process_that_prints_slowly(rank: int, n: int, delay: float) -> None:
    _meet(
        lambda: subprocess.check_output(
            f"for i in 1 2 3; do sleep {delay / 3}; echo $i; done", shell=True
        )
    )


@slow()
def process_that_is_joined(rank: int, n: int, delay: float) -> None:
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(delay,))
    child.start()
    _meet(child.join)


@slow()
def pool_of_processes(rank: int, n: int, delay: float) -> None:
    def work() -> None:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.map(time.sleep, [delay])

    _meet(work)


@slow()
def signal_of_a_process(rank: int, n: int, delay: float) -> None:
    heard = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    if rank == 0:
        subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -USR1 {os.getpid()}"])
        heard.wait()
    dist.barrier()


@slow()
def signal_of_a_process_left_behind(rank: int, n: int, delay: float) -> None:
    heard = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    if rank == 0:
        later = f"(sleep {delay}; kill -USR1 {os.getpid()}) >/dev/null 2>&1 &"
        subprocess.run(later, shell=True, check=True)
        heard.wait()
    dist.barrier()


@slow()
def workers_that_load_slowly(rank: int, n: int, delay: float) -> None:
    class Data(torch.utils.data.Dataset[int]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> int:
            time.sleep(delay / 2)
            return index

    def work() -> None:
        list(torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context="fork"))

    _meet(work)


@slow(init=False)
def process_that_is_a_peer(rank: int, n: int, delay: float) -> None:
    """Each rank makes a group with one of its child processes, which joins late and then sends late."""
    path = str(launch_folder() / f"own-store-{os.environ['RANK']}")

    def join(who: int) -> None:
        dist.init_process_group("gloo", store=dist.FileStore(path, 2), rank=who, world_size=2)

    def peer() -> None:
        time.sleep(delay / 2)
        join(1)
        time.sleep(delay / 2)
        dist.send(torch.ones(1), 0)

    child = multiprocessing.get_context("fork").Process(target=peer)
    child.start()
    join(0)
    dist.recv(torch.ones(1), 1)
    child.join()


# --- signals, stops -----------------------------------------------------------------------------------------


class _Rang(Exception):
    pass


@slow()
def alarm_clock(rank: int, n: int, delay: float) -> None:
    def ring(*_: object) -> None:
        raise _Rang

    if rank == 0:
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, delay)
        with contextlib.suppress(_Rang):
            threading.Event().wait()
    dist.barrier()


@slow()
def stopped_from_outside(rank: int, n: int, delay: float) -> None:
    """The test stops a rank during this program."""
    for _ in range(4):
        time.sleep(delay / 4)
        dist.all_reduce(torch.ones(100))


@slow(init=False)
def store_of_a_rank_that_has_returned(rank: int, n: int, delay: float) -> None:
    """Rank 0 serves a store for the others and returns. The test stops it before they ask."""
    port = _folder() / "port"
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        _LENT.append(store)
        port.with_suffix(".new").write_text(str(store.port))
        port.with_suffix(".new").rename(port)
        return
    while not port.exists():
        time.sleep(0.01)
    store = dist.TCPStore("127.0.0.1", int(port.read_text()))
    time.sleep(max(0.6, delay / 2))
    dist.init_process_group("gloo", store=store, rank=rank - 1, world_size=n - 1)


_LENT: list[dist.Store] = []
"""Stores that outlive the call that made them."""

STOPPED = {"stopped_from_outside", "store_of_a_rank_that_has_returned"}


# --- files, sockets, pipes ---------------------------------------------------------------------------------


@slow()
def own_sockets_between_ranks(rank: int, n: int, delay: float) -> None:
    path = str(_folder() / "s")
    if rank == 0:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            dist.barrier()
            connection, _ = server.accept()
            assert connection.recv(1) == b"x"
            connection.close()
    else:
        dist.barrier()
        if rank == 1:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                time.sleep(delay)
                client.send(b"x")
    dist.barrier()


@slow()
def pipe_that_is_filled_slowly(rank: int, n: int, delay: float) -> None:
    read, write = os.pipe()

    def fill() -> None:
        for _ in range(5):
            time.sleep(delay / 5)
            os.write(write, b"x")

    threading.Thread(target=fill, daemon=True).start()
    _meet(lambda: [os.read(read, 1) for _ in range(5)])


@slow()
def select_with_a_timeout(rank: int, n: int, delay: float) -> None:
    _meet(lambda: (select.select([], [], [], delay / 2), select.poll().poll(500 * delay)))


@slow()
def files_that_are_synced(rank: int, n: int, delay: float) -> None:
    def work() -> None:
        end = time.monotonic() + delay
        with open(_folder() / "big", "wb") as file:
            while time.monotonic() < end:
                file.write(b"x" * 4096)
                os.fsync(file.fileno())
                time.sleep(0.01)

    _meet(work)


@slow()
def file_that_another_rank_writes(rank: int, n: int, delay: float) -> None:
    path = _folder() / "word"
    if rank == 0:
        time.sleep(delay)
        path.write_text("x")
    while not path.exists():
        time.sleep(0.01)


# --- torch ------------------------------------------------------------------------------------------------


@slow(init=False)
def late_to_a_rendezvous_by_tcp(rank: int, n: int, delay: float) -> None:
    port = _folder() / "port"
    if rank == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port.write_text(str(probe.getsockname()[1]))
        time.sleep(delay)
    while not port.exists() or not port.read_text():
        time.sleep(0.01)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port.read_text())
    dist.init_process_group("gloo")
    dist.barrier()


@slow(init=False)
def late_to_a_rendezvous_by_file(rank: int, n: int, delay: float) -> None:
    time.sleep(delay * rank / n)
    store = dist.FileStore(str(_folder() / "own-store"), n)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=n)
    dist.barrier()


@slow()
def late_to_a_new_group(rank: int, n: int, delay: float) -> None:
    if rank == 0:
        time.sleep(delay)
    dist.all_reduce(torch.ones(1), group=dist.new_group(list(range(n))))


@slow()
def many_groups(rank: int, n: int, delay: float) -> None:
    for _ in range(6):
        dist.all_reduce(torch.ones(1), group=dist.new_group(list(range(n))))
        time.sleep(delay / 12)


def _gives_up(call: Callable[[], object]) -> None:
    try:
        call()
    except RuntimeError:
        return
    raise AssertionError("it went well")


@slow()
def group_that_gives_up(rank: int, n: int, delay: float) -> None:
    group = dist.new_group(list(range(n)), timeout=timedelta(seconds=max(delay, 1)))
    if rank == 0:
        _gives_up(lambda: dist.all_reduce(torch.ones(1), group=group))


@slow()
def receive_that_gives_up(rank: int, n: int, delay: float) -> None:
    if rank == 0:
        request = dist.irecv(torch.ones(1), 1)
        assert request is not None
        _gives_up(lambda: request.wait(timedelta(seconds=delay)))


@slow()
def new_group_that_gives_up(rank: int, n: int, delay: float) -> None:
    if rank == 0:
        _gives_up(lambda: dist.new_group(list(range(n)), timeout=timedelta(seconds=1)))


@slow(init=False)
def rendezvous_that_gives_up(rank: int, n: int, delay: float) -> None:
    if rank == 0:
        store = dist.FileStore(str(_folder() / "own-store"), n)
        within = timedelta(seconds=1)
        _gives_up(
            lambda: dist.init_process_group(
                "gloo", store=store, rank=0, world_size=n, timeout=within
            )
        )


@slow(init=False)
def store_that_gives_up(rank: int, n: int, delay: float) -> None:
    store = dist.FileStore(str(_folder() / "own-store"), n)
    if rank == 0:
        _gives_up(lambda: store.wait(["never"], timedelta(seconds=delay)))
        store.set("word", "x")
    else:
        store.get("word")


@slow()
def hook_of_backward_that_sleeps(rank: int, n: int, delay: float) -> None:
    layer = torch.nn.Linear(4, 4)
    layer.weight.register_hook(lambda grad: (time.sleep(delay * (rank == 0)), grad)[1])
    model = torch.nn.parallel.DistributedDataParallel(layer)
    model(torch.ones(2, 4)).sum().backward()


@slow()
def future_that_a_thread_sets(rank: int, n: int, delay: float) -> None:
    future: torch.futures.Future[int] = torch.futures.Future()

    def later() -> None:
        time.sleep(delay)
        future.set_result(1)

    threading.Thread(target=later).start()
    _meet(future.wait)


@slow()
def remote_call_that_sleeps(rank: int, n: int, delay: float) -> None:
    from torch.distributed import rpc

    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{_folder()}/rpc-store")
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=n, rpc_backend_options=options)
    if rank == 0:
        rpc.rpc_sync("w1", time.sleep, args=(delay,))
    rpc.shutdown()


@slow()
def large_messages(rank: int, n: int, delay: float) -> None:
    """A message between two ranks while the other ranks wait: gloo's threads do all the work."""
    x = torch.ones(int(20_000_000 * delay))
    for _ in range(2):
        if rank == 0:
            dist.send(x, 1)
        elif rank == 1:
            dist.recv(x)  # from any rank that sends
    dist.barrier()


@slow()
def many_small_messages(rank: int, n: int, delay: float) -> None:
    end = time.monotonic() + delay
    more = torch.ones(1)
    while more[0]:
        if rank == 0:
            more[0] = float(time.monotonic() < end)
            dist.send(more, 1)
            dist.recv(torch.ones(1), 1)
        elif rank == 1:
            dist.recv(more, 0)
            dist.send(torch.ones(1), 0)
        else:
            break


# --- the interpreter ----------------------------------------------------------------------------------------


class _SlowToGo:
    def __init__(self, delay: float) -> None:
        self.delay, self.own = delay, self

    def __del__(self) -> None:
        time.sleep(self.delay)


@slow()
def garbage_that_is_slow_to_go(rank: int, n: int, delay: float) -> None:
    def work() -> None:
        _SlowToGo(delay)
        gc.collect()

    _meet(work)


@slow()
def computation_in_c_that_holds_the_gil(rank: int, n: int, delay: float) -> None:
    _meet(lambda: sum(range(int(20_000_000 * delay))))


@slow()
def computation_in_torch(rank: int, n: int, delay: float) -> None:
    x = torch.ones(600, 600)

    def work() -> None:
        end = time.monotonic() + delay
        while time.monotonic() < end:
            x @ x

    _meet(work)


@slow()
def import_that_is_slow(rank: int, n: int, delay: float) -> None:
    folder = launch_folder() / os.environ["RANK"]
    folder.mkdir()
    (folder / "slow_module.py").write_text(f"import time; time.sleep({delay})")
    sys.path.insert(0, str(folder))
    _meet(lambda: __import__("slow_module"))


# --- keys of stores, and waits inside one process -----------------------------------------------------


def _default_store() -> dist.Store:
    return dist.distributed_c10d._get_default_store()


@slow()
def key_that_a_thread_sets_late(rank: int, n: int, delay: float) -> None:
    if rank == 0:
        threading.Timer(delay, lambda: _default_store().set("go", "")).start()
    _default_store().get("go")


@slow()
def key_that_a_child_sets_late(rank: int, n: int, delay: float) -> None:
    path = _folder() / "a-store"
    if rank == 0 and not os.fork():
        time.sleep(delay)
        dist.FileStore(str(path), n).set("go", "")
        os._exit(0)
    dist.FileStore(str(path), n).get("go")


@slow()
def keys_to_and_fro(rank: int, n: int, delay: float) -> None:
    """At each sample both ranks may be waiting for a key, but each time for a different one."""
    store, until = _default_store(), time.monotonic() + delay
    for step in range(10_000):
        if rank == 0:
            going = time.monotonic() < until
            store.set(f"there {step}", str(going))
            going = store.get(f"back {step}") == b"True"
        else:
            going = store.get(f"there {step}") == b"True"
            store.set(f"back {step}", str(going))
        if not going:
            return


@slow()
def wait_for_a_key_that_gives_up(rank: int, n: int, delay: float) -> None:
    with contextlib.suppress(dist.DistStoreError):
        _default_store().wait(["no key"], timedelta(seconds=delay))
    dist.barrier()


@slow()
def future_set_by_a_thread(rank: int, n: int, delay: float) -> None:
    async def waits() -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        set_it = threading.Timer(delay, loop.call_soon_threadsafe, (future.set_result, None))
        set_it.start()
        await future

    _meet(lambda: asyncio.run(waits()))


@slow()
def asyncio_timer(rank: int, n: int, delay: float) -> None:
    _meet(lambda: asyncio.run(asyncio.sleep(delay)))


@slow()
def pipe_written_by_a_child(rank: int, n: int, delay: float) -> None:
    def reads() -> None:
        ours, theirs = os.pipe()
        if not os.fork():
            time.sleep(delay)
            os.write(theirs, b"x")
            os._exit(0)
        os.read(ours, 1)

    _meet(reads)


@slow()
def pipe_written_by_a_thread(rank: int, n: int, delay: float) -> None:
    def reads() -> None:
        ours, theirs = os.pipe()
        threading.Timer(delay, os.write, (theirs, b"x")).start()
        os.read(ours, 1)

    _meet(reads)


@slow()
def worker_that_answers_by_a_pipe(rank: int, n: int, delay: float) -> None:
    """`Queue.get` without a timeout reads from a pipe, as in a DataLoader with workers."""

    class Late(torch.utils.data.Dataset[int]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> int:
            time.sleep(delay)
            return index

    loader = torch.utils.data.DataLoader(Late(), num_workers=1, multiprocessing_context="fork")
    _meet(lambda: list(loader))


@slow()
def file_lock_that_is_held_for_long(rank: int, n: int, delay: float) -> None:
    """First a sleeping rank holds the lock, then a rank waiting for others until its thread releases it."""
    path = _folder() / "lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(delay / n)
    dist.barrier()
    with path.open("w") as file:
        if rank == 0:
            fcntl.flock(file, fcntl.LOCK_EX)
            threading.Timer(delay, fcntl.flock, (file, fcntl.LOCK_UN)).start()
        dist.barrier()
        if rank:
            fcntl.flock(file, fcntl.LOCK_EX)
            fcntl.flock(file, fcntl.LOCK_UN)
        dist.barrier()


@slow()
def file_lock_that_a_child_holds(rank: int, n: int, delay: float) -> None:
    path = _folder() / f"lock-{rank}"
    ours, theirs = os.pipe()
    with path.open("w") as file:
        if not os.fork():
            with path.open("w") as own:
                fcntl.flock(own, fcntl.LOCK_EX)
                os.write(theirs, b"x")
                time.sleep(delay)
            os._exit(0)
        os.read(ours, 1)
        _meet(lambda: fcntl.flock(file, fcntl.LOCK_EX))
