# %% breakpoint_set | breakpoint() with PYTHONBREAKPOINT=0 does nothing.
import os


def main(rank, world_size):
    os.environ["PYTHONBREAKPOINT"] = "0"
    breakpoint()
    return "continued"


# %% clock | Clocks continue while a rank sleeps.
import time


def main(rank, world_size):
    wall, cpu = time.perf_counter(), time.process_time()
    time.sleep(0.3)
    return time.perf_counter() - wall >= 0.3, time.process_time() - cpu < 0.3


# %% collected_cycle | A cycle of objects is collected.
import gc


class Node:
    count = 0

    def __init__(self):
        self.me = self
        Node.count += 1

    def __del__(self):
        Node.count -= 1


def main(rank, world_size):
    for _ in range(10):
        Node()
    gc.collect()
    return Node.count, gc.isenabled()


# %% deep_recursion | A deep recursion under a raised limit.
import sys


def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


def main(rank, world_size):
    sys.setrecursionlimit(5000)
    return down(4000)


# %% default_dtype | set_default_dtype on one rank does not affect others.
import torch


def main(rank, world_size):
    if rank == 0:
        torch.set_default_dtype(torch.float64)
    return torch.ones(1).dtype, torch.get_default_dtype()


# %% default_limit | The recursion limit is Python's default, and so are other settings.
import sys


def main(rank, world_size):
    return (
        sys.getrecursionlimit(),
        sys.flags.optimize,
        sys.getswitchinterval(),
        sys.gettrace() is None,
    )


# %% excepthook | Joining the group has set an excepthook; the hook for unraisable errors is Python's.
import sys


def main(rank, world_size):
    return sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__


# %% exec_and_eval | exec and eval with the cell's names.
import torch


def main(rank, world_size):
    space = {"torch": torch}
    exec("def f(x):\n    return torch.ones(x) * 2", space)
    return space["f"](2), eval("rank + world_size")


# %% globals_of_main | globals() holds the cell's names, and a name added to it can be used.
STEPS = 3
DIFFERS = {
    "untraced": (
        [(1, False, True), (2, False, True)],
        "a function is sent with the names that its code uses",
    ),
    "launch": (
        [(1, False, True), (2, False, True)],
        "a function is sent with the names that its code uses",
    ),
}


def main(rank, world_size):
    globals()["MADE"] = rank + 1
    return MADE, "STEPS" in globals(), "main" in globals()


# %% import_late | A module of the standard library is imported within main, for the first time.
def main(rank, world_size):
    import colorsys
    import sched

    return colorsys.rgb_to_hsv(1, 0, 0), sched.__name__


# %% limits | A limit on open files set by a rank does not affect others.
import resource

FAILS = "OSError"


def main(rank, world_size):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    kept = [open("/dev/null") for _ in range(100)]
    return len(kept)


# %% live_tensors | gc finds the tensors that a rank holds.
import gc

import torch


def main(rank, world_size):
    kept = [torch.zeros(1234) for _ in range(5)]
    found = [o for o in gc.get_objects() if type(o) is torch.Tensor and o.shape == (1234,)]
    return len(found), len(kept)


# %% memory_limit | A limit on memory: a tensor that is too large raises.
import resource

import torch

FAILS = "RuntimeError"


def main(rank, world_size):
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20), -1))
    return torch.zeros(1 << 30).sum()


# %% missing_module | A module that is not installed.
FAILS = "ModuleNotFoundError"


def main(rank, world_size):
    import no_such_library

    return no_such_library


# %% no_gpu | torch's answers about GPUs if the rank has none.
import torch


def main(rank, world_size):
    with torch.device("cpu"):
        x = torch.ones(1)
    return x.device, torch.cuda.is_initialized(), torch.get_default_device()


# %% own_module | Rank 0 writes a module next to the program; all ranks import it.
import os
import sys

import torch.distributed as dist


def main(rank, world_size):
    if rank == 0:
        with open("conformance_made.py", "w") as file:
            file.write("def answer():\n    return 42\n")
    dist.barrier()
    sys.path.insert(0, os.getcwd())
    import conformance_made

    return conformance_made.answer()


# %% pids | Ranks are separate processes with one parent.
import os

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    seen = [None] * world_size
    dist.all_gather_object(seen, (os.getpid(), os.getppid()))
    return len({pid for pid, _ in seen}), len({parent for _, parent in seen})


# %% profile | cProfile within main.
import cProfile
import pstats


def work(n):
    return sum(range(n))


def main(rank, world_size):
    profile = cProfile.Profile()
    value = profile.runcall(work, 100)
    return value, any(name == "work" for _, _, name in pstats.Stats(profile).stats)


# %% recursion_error | An endless recursion.
FAILS = "RecursionError"


def down(n):
    return down(n + 1)


def main(rank, world_size):
    return down(0)


# %% torch_profiler | torch.profiler records the operations of a rank.
import torch
from torch.profiler import ProfilerActivity, profile


def main(rank, world_size):
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        torch.mm(torch.ones(4, 4), torch.ones(4, 4))
    return "aten::mm" in {event.key for event in seen.key_averages()}


# %% tracemalloc | tracemalloc counts a rank's memory.
import tracemalloc


def main(rank, world_size):
    tracemalloc.start()
    kept = [bytes(1000) for _ in range(100)]
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return len(kept), now > 90_000, peak >= now


# %% weakref | A weak reference dies with its object; a finalizer runs.
import gc
import weakref


class Thing:
    pass


def main(rank, world_size):
    said = []
    thing = Thing()
    reference = weakref.ref(thing)
    weakref.finalize(thing, said.append, "gone")
    alive = reference() is thing
    del thing
    gc.collect()
    return alive, reference() is None, said
