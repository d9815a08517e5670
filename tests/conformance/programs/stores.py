# %% compare_set | compare_set only writes if the value is as expected: one rank wins.
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    store = dist.distributed_c10d._get_default_store()
    won = store.compare_set("leader", "", f"rank {rank}")
    dist.barrier()
    leaders = [None] * world_size
    dist.all_gather_object(leaders, won.decode())
    return len(set(leaders))


# %% default_store | Ranks leave notes for each other in the default group's store.
from torch.distributed.distributed_c10d import _get_default_store

WORLD_SIZE = 3


def main(rank, world_size):
    store = _get_default_store()
    store.set(f"note {rank}", "x" * rank)
    left = (rank - 1) % world_size
    return store.get(f"note {left}").decode()


# %% default_store_times_out | A key of the default store is never set: a DistStoreError after the timeout.
import time
from datetime import timedelta

import torch.distributed as dist


def main(rank, world_size):
    store = dist.PrefixStore("mine", dist.distributed_c10d._get_default_store())
    ends = []
    for wait in (
        lambda: store.wait(["no key"], timedelta(seconds=0.5)),
        lambda: store.get("no key"),
    ):
        began = time.monotonic()
        store.set_timeout(timedelta(seconds=0.5))
        try:
            wait()
        except Exception as error:
            words = str(error).split(",")[0]
            ends.append((type(error).__name__, words, time.monotonic() - began < 1.4))
    return ends


# %% file_store | A FileStore on a path known to all ranks.
import os
import tempfile

import torch.distributed as dist


def main(rank, world_size):
    path = os.path.join(tempfile.gettempdir(), "conformance-file-store")
    store = dist.FileStore(path, world_size)
    store.set(f"from {rank}", str(rank * 11))
    store.wait([f"from {r}" for r in range(world_size)])
    got = [store.get(f"from {r}") for r in range(world_size)]
    dist.barrier()
    if rank == 0 and os.path.exists(path):
        os.unlink(path)
    return got


# %% file_store_times_out | A key of a FileStore is never set: a RuntimeError, not a DistStoreError.
import os
import tempfile
from datetime import timedelta

import torch.distributed as dist

FAILS = "RuntimeError"
WORLD_SIZE = 1


def main(rank, world_size):
    with tempfile.TemporaryDirectory() as folder:
        store = dist.FileStore(os.path.join(folder, "store"), 1)
        store.set_timeout(timedelta(seconds=1))
        return store.get("nobody sets this")


# %% get_times_out | A key is never set: get raises an error after its timeout.
from datetime import timedelta

import torch.distributed as dist

FAILS = "DistStoreError"
WORLD_SIZE = 1


def main(rank, world_size):
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=1))
    return store.get("nobody sets this")


# %% hash_store | A HashStore belongs to a single process.
import torch.distributed as dist


def main(rank, world_size):
    store = dist.HashStore()
    store.set("a", "1")
    store.add("count", rank)
    store.add("count", 5)
    return store.get("a"), store.add("count", 0), store.num_keys(), store.delete_key("a")


# %% host_has_left | A key is awaited from rank 0, which has returned; in new processes its store ends.
import torch.distributed as dist

FAILS = "DistNetworkError"
DIFFERS = {
    "untraced": ("Deadlock", "a rank that has returned is named before its connections close"),
    "launch": ("Deadlock", "a rank that has returned is named before its connections close"),
    "ranks": ("Deadlock", "a rank that has returned is named before its connections close"),
    "script": ("Deadlock", "a rank that has returned is named before its connections close"),
}


def main(rank, world_size):
    if rank == 1:
        dist.distributed_c10d._get_default_store().get("set by nobody")
    return "done"


# %% init_with_store | Join the group with an explicit store.
import os
import tempfile

import torch
import torch.distributed as dist

INIT = False


def main(rank, world_size):
    path = os.path.join(tempfile.gettempdir(), "conformance-init-store")
    store = dist.FileStore(path, world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    x = torch.tensor([rank + 1])
    dist.all_reduce(x, op=dist.ReduceOp.PRODUCT)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0 and os.path.exists(path):
        os.unlink(path)
    return x


# %% missing_key | Every rank waits for a key of the default group's store, but no rank sets it.
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    return dist.distributed_c10d._get_default_store().get("go")


# %% own_server_has_left | Rank 0 closes its TCPStore while rank 1 waits for a key: rank 1 catches the error.
from datetime import timedelta

import torch.distributed as dist


def main(rank, world_size):
    default = dist.distributed_c10d._get_default_store()
    if rank == 0:
        own = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        default.set("port", str(own.port))
        own.get("rank 1 is there")
        del own
        return "done"
    port = int(default.get("port"))
    own = dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=20))
    own.set("rank 1 is there", "")
    try:
        own.get("set by nobody")
    except Exception as error:
        return type(error).__name__


# %% prefix_store | PrefixStore separates two users of one store.
import torch.distributed as dist


def main(rank, world_size):
    base = dist.HashStore()
    one, two = dist.PrefixStore("one", base), dist.PrefixStore("two", base)
    one.set("key", "first")
    two.set("key", "second")
    return one.get("key"), two.get("key"), base.check(["one/key", "two/key", "key"])


# %% tcp_store | Rank 0 serves a TCPStore; the others read its values and count.
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    port = [None]
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, world_size, is_master=True, wait_for_workers=False)
        port[0] = store.port
    dist.broadcast_object_list(port, src=0)
    if rank != 0:
        store = dist.TCPStore("127.0.0.1", port[0], world_size, is_master=False)
    if rank == 0:
        store.set("color", "green")
    got = store.get("color")
    store.add("seen", 1)
    dist.barrier()
    total = store.add("seen", 0)
    dist.barrier()
    return got, total
