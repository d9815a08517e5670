"""Answers that sum without the send and recv allowed in `ring_all_reduce`.

Each defines `total(rank, world_size, x)`, which returns the right sum. For show, the answer also makes the
sends and receives that the rules require, with zeros, so that only the bypass can reveal it.
"""

from __future__ import annotations

SHOW = """
def ring_all_reduce(rank, world_size, x):
    blank = list(torch.zeros(len(x), dtype=x.dtype).tensor_split(world_size))
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(2 * (world_size - 1)):
        out = blank[(rank - step) % world_size]
        box = torch.empty_like(blank[(rank - step - 1) % world_size])
        work = dist.isend(out, right)
        dist.recv(box, left)
        work.wait()
    return total(rank, world_size, x.clone())
"""

BYPASSES = {
    "torch.ops.c10d": """
def total(rank, world_size, x):
    every = [torch.empty_like(x) for _ in range(world_size)]
    torch.ops.c10d.allgather_([every], [x], dist.group.WORLD.boxed(), True, -1)[1].wait()
    return sum(every)
""",
    "the process group's methods": """
def total(rank, world_size, x):
    dist.group.WORLD.allreduce([x]).wait()
    return x
""",
    "a new group": """
def total(rank, world_size, x):
    group = dist.new_group(list(range(world_size)))
    dist.all_reduce(x, group=group)
    return x
""",
    "an import hidden in a string": """
def total(rank, world_size, x):
    exec("import torch.distributed as d; d.__dict__['all' + '_reduce'](x)", {"x": x})
    return x
""",
    "functional collectives": """
def total(rank, world_size, x):
    functional = torch.ops._c10d_functional
    summed = functional.all_reduce(x, "sum", dist.group.WORLD.group_name)
    return functional.wait_tensor(summed)
""",
    "collectives of objects": """
def total(rank, world_size, x):
    every = [None] * world_size
    dist.all_gather_object(every, x)
    return sum(every)
""",
    "the backend's methods, below the dispatcher": """
def total(rank, world_size, x):
    dist.group.WORLD._get_backend(torch.device("cpu")).allreduce([x]).wait()
    return x
""",
    "a key-value store": """
import pickle
def total(rank, world_size, x):
    store = dist.distributed_c10d._get_default_store()
    store.set(f"x{rank}", pickle.dumps(x))
    return sum(pickle.loads(store.get(f"x{r}")) for r in range(world_size))
""",
    "a socket of its own": """
import pickle, socket, time
def total(rank, world_size, x):
    every = {rank: x}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mine:
        mine.bind(f"\\0sum-{rank}")
        for other in range(world_size):
            while other != rank:
                try:
                    mine.sendto(pickle.dumps((rank, x)), f"\\0sum-{other}")
                    break
                except OSError:
                    time.sleep(0.01)
        mine.settimeout(5)
        while len(every) < world_size:
            other, y = pickle.loads(mine.recv(100_000))
            every[other] = y
        time.sleep(0.2)
    return sum(every[r] for r in range(world_size))
""",
    "a shared file": """
import os, time
def total(rank, world_size, x):
    folder = os.path.dirname(os.environ["TMPDIR"])
    torch.save(x, f"{folder}/part-{rank}")
    open(f"{folder}/done-{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/done-{r}") for r in range(world_size)):
        time.sleep(0.01)
    return sum(torch.load(f"{folder}/part-{r}") for r in range(world_size))
""",
    "shared memory": """
import time
from multiprocessing import resource_tracker, shared_memory
calls = []
def total(rank, world_size, x):
    resource_tracker.register = lambda *args: None
    calls.append(rank)
    size = x.nbytes + 1
    kept = shared_memory.SharedMemory(f"sum-{len(calls)}-{rank}", create=True, size=size)
    kept.buf[1:size] = x.numpy().tobytes()
    kept.buf[0] = 1
    sums = torch.zeros_like(x)
    for other in range(world_size):
        while True:
            try:
                area = shared_memory.SharedMemory(f"sum-{len(calls)}-{other}")
                if area.buf[0] == 1:
                    break
            except (FileNotFoundError, ValueError):
                pass
            time.sleep(0.01)
        sums += torch.frombuffer(bytearray(area.buf[1:size]), dtype=x.dtype)
        area.close()
    return sums
""",
    "the recorder switched off": """
def total(rank, world_size, x):
    from helpers.trace import kernels
    kernels._installed.recorder.active = False
    dist.all_reduce(x)
    return x
""",
    "a case's end told too early, in its caller's frame": """
import sys
def total(rank, world_size, x):
    frame = sys._getframe(1)
    while "recorded_call_count" not in frame.f_globals:
        frame = frame.f_back
    harness, count = frame.f_globals, frame.f_globals["recorded_call_count"]
    end = count()
    def once():
        harness["recorded_call_count"] = count
        return end
    harness["recorded_call_count"] = once
    dist.all_reduce(x)
    return x
""",
    "a sparse tensor": """
def total(rank, world_size, x):
    sparse = x.to_sparse()
    dist.all_reduce(sparse)
    return sparse.to_dense()
""",
    "a shared file, named at run time": """
import os, time
def total(rank, world_size, x):
    folder = os.path.dirname(os.environ["TMPDIR"])
    torch.save(x, f"{folder}/part-{rank}.new")
    os.rename(f"{folder}/part-{rank}.new", f"{folder}/part-{rank}")
    while not all(os.path.exists(f"{folder}/part-{r}") for r in range(world_size)):
        time.sleep(0.01)
    return sum(torch.load(f"{folder}/part-{r}") for r in range(world_size))
""",
}
"""Bypasses by their names in `test_bypasses`."""
