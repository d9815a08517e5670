"""Programs in which no rank can continue, one for each cause, with the expected diagnosis."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from helpers.ranks.rank_context import launch_folder


@dataclass(frozen=True)
class Stuck:
    """A program, with its possible kinds of diagnosis, and the kinds if nothing was recorded."""

    work: Callable[[int, int], object]
    kinds: set[str]
    unrecorded: set[str]
    world_size: int = 2
    init: bool = True


STUCK: dict[str, Stuck] = {}

Program = Callable[[int, int], object]


def stuck(
    kinds: str, unrecorded: str = "stuck", world_size: int = 2, init: bool = True
) -> Callable[[Program], Program]:
    def put(work: Program) -> Program:
        STUCK[work.__name__] = Stuck(
            work, set(kinds.split()), set(unrecorded.split()), world_size, init
        )
        return work

    return put


def one() -> torch.Tensor:
    return torch.ones(1)


@stuck("cycle", world_size=3)
def cycle_of_receives(rank: int, n: int) -> None:
    dist.recv(one(), (rank + 1) % n)


@stuck("cycle", world_size=3)
def cycle_of_sends(rank: int, n: int) -> None:
    dist.send(one(), (rank + 1) % n)


@stuck("cycle")
def irecv_that_is_waited_for(rank: int, n: int) -> None:
    request = dist.irecv(one(), 1 - rank)
    assert request is not None
    request.wait()


@stuck("rank_left", "rank_left", world_size=3)
def left_before_a_collective(rank: int, n: int) -> None:
    if rank:
        dist.all_reduce(one())


@stuck("rank_left", "rank_left")
def left_before_a_send(rank: int, n: int) -> None:
    if rank:
        dist.recv(one(), 0)


@stuck("mismatched_collectives", world_size=3)
def another_collective(rank: int, n: int) -> None:
    if rank == 0:
        dist.all_reduce(one())
    else:
        dist.broadcast(one(), 0)


@stuck("different_shapes", "stuck rank_left", world_size=4)
def different_shapes(rank: int, n: int) -> None:
    dist.all_reduce(torch.ones(3 + rank))


@stuck("unmatched")
def tags(rank: int, n: int) -> None:
    if rank == 0:
        dist.send(one(), 1, tag=1)
    else:
        dist.recv(one(), 0, tag=2)


@stuck("mismatched_collectives")
def two_groups_crosswise(rank: int, n: int) -> None:
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
    for group in groups if rank == 0 else groups[::-1]:
        dist.all_reduce(one(), group=group)


@stuck("rank_left", "rank_left")
def new_group_without_a_rank(rank: int, n: int) -> None:
    if rank == 0:
        dist.new_group([0, 1])


@stuck("unmatched")
def new_group_during_a_receive(rank: int, n: int) -> None:
    if rank == 0:
        dist.new_group([0, 1])
    else:
        dist.recv(one(), 0)


@stuck("rank_left", "rank_left", init=False)
def init_by_file_without_a_rank(rank: int, n: int) -> None:
    if rank == 0:
        store = dist.FileStore(str(launch_folder() / f"own-store-{os.environ['RANK']}"), n)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=n)


def _environment() -> None:
    """Set MASTER_PORT to a free port, where the server may listen later. No port is fixed."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(probe.getsockname()[1]))


@stuck("rank_left", "rank_left", init=False)
def init_by_tcp_without_a_client(rank: int, n: int) -> None:
    _environment()
    if rank == 0:
        dist.init_process_group("gloo")


@stuck("rank_left", "rank_left", init=False)
def init_by_tcp_without_the_server(rank: int, n: int) -> None:
    _environment()
    if rank == 1:
        dist.init_process_group("gloo")


@stuck("stuck", init=False)
def init_with_a_wrong_world_size(rank: int, n: int) -> None:
    folder = launch_folder()  # the same for all ranks of a world
    store = dist.FileStore(str(folder / "own-store"), 3)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=3)


@stuck("rank_left", "rank_left", world_size=3)
def monitored_barrier(rank: int, n: int) -> None:
    if rank:
        dist.monitored_barrier(timeout=timedelta(minutes=5))


@stuck("rank_left", "rank_left")
def object_collective(rank: int, n: int) -> None:
    if rank:
        dist.all_gather_object([None] * n, rank)


@stuck("mismatched_collectives")
def object_collectives_that_differ(rank: int, n: int) -> None:
    if rank:
        dist.broadcast_object_list([1], 0)
    else:
        dist.all_gather_object([None] * n, rank)


@stuck("skipped_backward", "rank_left")
def skipped_backward(rank: int, n: int) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    for step in range(2):
        loss = model(torch.ones(2, 4)).sum()
        if rank == 0 or step == 0:
            loss.backward()


@stuck("stuck")
def lock_of_its_own(rank: int, n: int) -> None:
    lock = threading.Lock()
    with lock, lock:
        pass


@stuck("cycle")
def deadlock_with_a_heartbeat(rank: int, n: int) -> None:
    seen: list[float] = []

    def beat() -> None:
        while True:
            time.sleep(0.05)
            seen.append(time.monotonic())

    threading.Thread(target=beat, daemon=True).start()
    dist.recv(one(), 1 - rank)


@stuck("cycle")
def deadlock_with_a_progress_bar(rank: int, n: int) -> None:
    from tqdm import tqdm

    for _ in tqdm(range(3), mininterval=0):
        dist.recv(one(), 1 - rank)


@stuck("cycle")
def deadlock_with_an_idle_pool(rank: int, n: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(abs, range(10)))
        dist.recv(one(), 1 - rank)


@stuck("cycle")
def in_a_pool(rank: int, n: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    ThreadPoolExecutor(3).submit(dist.recv, one(), 1 - rank).result()


@stuck("cycle")
def deadlock_with_data_workers(rank: int, n: int) -> None:
    from torch.utils.data import DataLoader

    for _ in DataLoader(list(range(40)), batch_size=2, num_workers=2):  # type: ignore[arg-type]
        dist.recv(one(), 1 - rank)


@stuck("rank_left", "rank_left")
def rpc_without_a_rank(rank: int, n: int) -> None:
    from torch.distributed import rpc

    _environment()
    if rank == 0:
        rpc.init_rpc("w0", rank=0, world_size=n)


def _wait_for_ever() -> None:
    threading.Event().wait()


@stuck("stuck")
def rpc_that_never_returns(rank: int, n: int) -> None:
    from torch.distributed import rpc

    store = launch_folder() / "rpc-store"
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{store}", rpc_timeout=7200)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=n, rpc_backend_options=options)
    if rank == 0:
        rpc.rpc_sync("w1", _wait_for_ever)
    rpc.shutdown()


def _default_store() -> dist.Store:
    return dist.distributed_c10d._get_default_store()


@stuck("missing_key", "missing_key")
def key_that_is_never_set(rank: int, n: int) -> None:
    _default_store().get("go")


@stuck("missing_key", "missing_key")
def key_with_another_prefix(rank: int, n: int) -> None:
    store = dist.PrefixStore(f"rank {rank}", _default_store())
    if rank == 0:
        store.set("go", "")
    else:
        store.wait(["go"])


@stuck("missing_key", "missing_key", init=False)
def key_of_a_server_in_a_rank(rank: int, n: int) -> None:
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), n, rank == 0)
    store.get("go")


@stuck("missing_key", "missing_key")
def key_of_a_peer_that_waits(rank: int, n: int) -> None:
    if rank == 0:
        _default_store().get("go")
    else:
        dist.recv(one(), 0)


@stuck("stuck", "stuck")
def future_that_is_never_set(rank: int, n: int) -> None:
    async def waits() -> None:
        await asyncio.get_running_loop().create_future()

    asyncio.run(waits())


@stuck("stuck", "stuck")
def pipe_that_is_never_written(rank: int, n: int) -> None:
    os.read(os.pipe()[0], 1)


@stuck("stuck")
def queue_of_the_peer(rank: int, n: int) -> None:
    if rank == 0:
        queue.Queue[int]().get()
    else:
        dist.recv(one(), 0)


@stuck("unmatched", world_size=3)
def ring_that_receives_from_the_wrong_side(rank: int, n: int) -> None:
    after = (rank + 1) % n
    calls = [dist.P2POp(dist.isend, one(), after), dist.P2POp(dist.irecv, one(), after)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()


@stuck("stuck")
def locks_taken_in_two_orders(rank: int, n: int) -> None:
    locks, both = [threading.Lock(), threading.Lock()], threading.Barrier(2)

    def take(first: int) -> None:
        with locks[first]:
            both.wait()
            with locks[1 - first]:
                pass

    threads = [threading.Thread(target=take, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@stuck("mismatched_collectives", world_size=4)
def another_collective_after_one_of_a_subgroup(rank: int, n: int) -> None:
    group = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(one(), group=group)
    if rank == 3:
        dist.broadcast(one(), 0)
    else:
        dist.all_reduce(one())


@stuck("mismatched_collectives", "rank_left")
def call_too_many(rank: int, n: int) -> None:
    if rank == 0:
        dist.all_reduce(one())
    for _ in range(3):
        dist.all_reduce(one())


@stuck("skipped_backward", "rank_left")
def backward_that_communicates(rank: int, n: int) -> None:
    from torch.distributed.nn import functional

    given = torch.ones(2, requires_grad=True)
    result = functional.all_reduce(given).sum()
    if rank == 0:
        result.backward()


@stuck("skipped_backward", "rank_left")
def loss_without_parameters(rank: int, n: int) -> None:
    layer = torch.nn.Linear(2, 1)

    class Maybe(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, used: bool) -> torch.Tensor:
            return self.layer(torch.ones(2)).sum() if used else torch.zeros((), requires_grad=True)

    model = torch.nn.parallel.DistributedDataParallel(Maybe(), find_unused_parameters=True)
    for _ in range(2):
        model(rank == 0).backward()


@stuck("mismatched_collectives", "stuck")
def gather_to_oneself(rank: int, n: int) -> None:
    dist.gather(one(), [one() for _ in range(n)], dst=rank)


@stuck("stuck", "stuck", world_size=4)
def local_group_after_another(rank: int, n: int) -> None:
    if rank == 0:
        dist.new_group([0], use_local_synchronization=True)
    dist.new_group([0, 1] if rank < 2 else [2, 3], use_local_synchronization=True)


@stuck("stuck", "stuck", world_size=3)
def groups_in_different_orders(rank: int, n: int) -> None:
    members = [[0, 1], [1, 2]]
    for ranks in members if rank != 1 else members[::-1]:
        dist.new_group(ranks)


@stuck("file_lock", "file_lock")
def file_lock_around_a_barrier(rank: int, n: int) -> None:
    import fcntl

    if rank == 1:
        dist.barrier()
    with open(launch_folder() / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if rank == 0:
            dist.barrier()
        dist.barrier()


@stuck("file_lock", "file_lock", world_size=3)
def record_lock_of_a_peer(rank: int, n: int) -> None:
    import fcntl

    with open(launch_folder() / "lock", "w") as file:
        if rank:
            dist.barrier()
        fcntl.lockf(file, fcntl.LOCK_EX)
        if rank == 0:
            dist.barrier()
            dist.recv(one(), 1)
        else:
            dist.send(one(), 0)


@stuck("file_lock", "file_lock", world_size=1)
def file_lock_of_its_own(rank: int, n: int) -> None:
    import fcntl

    with open(launch_folder() / "lock", "w") as one_file:
        fcntl.flock(one_file, fcntl.LOCK_EX)
        with open(launch_folder() / "lock", "w") as same_file:
            fcntl.flock(same_file, fcntl.LOCK_EX)


@stuck("stuck", init=False)
def store_of_its_own(rank: int, n: int) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=rank, world_size=n)


@stuck("stuck", init=False)
def number_of_another_rank(rank: int, n: int) -> None:
    store = dist.FileStore(str(launch_folder() / "same-store"), n)
    dist.init_process_group("gloo", store=store, rank=1, world_size=n)


@stuck("stuck")
def group_too_many(rank: int, n: int) -> None:
    if rank == 1:
        dist.new_group([0])
    dist.new_group([0, 1])


@stuck("mismatched_collectives")
def monitored_barrier_against_another_collective(rank: int, n: int) -> None:
    if rank == 0:
        dist.monitored_barrier(timeout=timedelta(minutes=5))
    dist.all_reduce(one())


@stuck("unmatched", world_size=1)
def receive_in_a_world_of_its_own(rank: int, n: int) -> None:
    dist.irecv(one()).wait()


@stuck("unmatched")
def receive_in_a_group_of_its_own(rank: int, n: int) -> None:
    groups = [dist.new_group([member]) for member in range(n)]
    if rank == 1:
        dist.recv(one(), group=groups[rank])
    dist.barrier()
