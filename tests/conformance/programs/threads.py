# %% collectives_in_pool | Each thread has a separate group and calls collectives on it.
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist


def main(rank, world_size):
    groups = [dist.new_group() for _ in range(3)]

    def work(i):
        x = torch.tensor([float(i + rank)])
        for _ in range(20):
            dist.all_reduce(x, op=dist.ReduceOp.MAX, group=groups[i])
        return x.item()

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(work, range(3)))


# %% condition_and_lock | A condition and a lock, waited for with time limits.
import threading

import torch.distributed as dist


def main(rank, world_size):
    got = []
    if rank == 0:
        lock = threading.Lock()
        lock.acquire()
        got.append(lock.acquire(timeout=0.8))
        condition = threading.Condition()
        with condition:
            got.append(condition.wait(timeout=0.8))
    dist.barrier()
    return got


# %% counting | The number of Python's threads: the main thread and the thread that it started.
import threading


def main(rank, world_size):
    before = threading.active_count()
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    during = threading.active_count()
    event.set()
    thread.join()
    return before, during, threading.current_thread() is threading.main_thread()


# %% daemon_left | A daemon thread loops forever; main returns nevertheless.
import threading
import time


def main(rank, world_size):
    def forever():
        while True:
            time.sleep(0.05)

    threading.Thread(target=forever, daemon=True).start()
    return "main is done"


# %% deadlock_beside_daemon | A true deadlock while a daemon thread of each rank wakes five times a second.
import threading
import time

import torch
import torch.distributed as dist

FAILS = "hang"


def beat():
    while True:
        time.sleep(0.2)


def main(rank, world_size):
    threading.Thread(target=beat, daemon=True).start()
    x = torch.zeros(1)
    dist.recv(x, src=1 - rank)


# %% error_in_pool | An error in a pool's thread is raised when its result is requested.
from concurrent.futures import ThreadPoolExecutor

FAILS = "ZeroDivisionError"


def main(rank, world_size):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: 1 // rank).result() if rank == 0 else 0


# %% error_in_thread | An error in a thread is printed and does not end the rank.
import threading


def main(rank, world_size):
    seen = []
    threading.excepthook = lambda args: seen.append(args.exc_type.__name__)
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join()
    return seen


# %% event_wait | Event.wait with a time limit, while the other rank waits in a collective.
import threading

import torch.distributed as dist


def main(rank, world_size):
    came = None
    if rank == 1:
        came = threading.Event().wait(1.5)
    dist.barrier()
    return came


# %% future_nobody_sets | A rank awaits a future that is never set; the other waits for that rank.
import asyncio

import torch
import torch.distributed as dist

FAILS = "hang"


async def waits():
    await asyncio.get_running_loop().create_future()


def main(rank, world_size):
    if rank == 0:
        asyncio.run(waits())
    dist.all_reduce(torch.ones(1))


# %% gradients_in_thread | backward runs in a thread while main waits for it.
import threading

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1))

    def train():
        model(torch.ones(1, 2) * (rank + 1)).sum().backward()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    return model.module.weight.grad


# %% late_sender | A rank sleeps for two seconds before sending; the other one waits.
import time

import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.tensor([float(rank)])
    if rank == 0:
        time.sleep(2)
    dist.all_reduce(x)
    return x


# %% local_data | threading.local keeps a separate value for each thread.
import threading


def main(rank, world_size):
    own = threading.local()
    own.value, others = rank, []

    def look():
        own.value = 100
        others.append(own.value)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return own.value, others


# %% lock_deadlock | A rank locks a lock twice and waits for itself; the other one waits for the rank.
import threading

import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    lock = threading.Lock()
    if rank == 0:
        lock.acquire()
        lock.acquire()
    dist.barrier()


# %% names | The names of Python's threads.
import threading


def main(rank, world_size):
    return [thread.name for thread in threading.enumerate()]


# %% pool | A pool of threads computes; main sums with the other rank.
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist


def main(rank, world_size):
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: i * i + rank, range(10)))
    x = torch.tensor(parts)
    dist.all_reduce(x)
    return x


# %% producer | A producer thread fills a queue, and main sends its items.
import queue
import threading

import torch
import torch.distributed as dist


def main(rank, world_size):
    if rank == 1:
        got = []
        for _ in range(5):
            x = torch.zeros(1)
            dist.recv(x, src=0)
            got.append(x.item())
        return got
    q = queue.Queue(maxsize=1)
    thread = threading.Thread(target=lambda: [q.put(i * 2.0) for i in range(5)])
    thread.start()
    for _ in range(5):
        dist.send(torch.tensor([q.get()]), dst=1)
    thread.join()
    return "sent"


# %% queue_timeout | queue.get with a timeout ends with Empty, then the rank continues.
import queue

import torch
import torch.distributed as dist


def main(rank, world_size):
    said = ""
    if rank == 0:
        try:
            queue.Queue().get(timeout=1.5)
        except queue.Empty:
            said = "empty"
    x = torch.ones(1)
    dist.all_reduce(x)
    return said, x


# %% timer_sends | A timer sends after a second while main waits for it.
import threading

import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.zeros(1)
    if rank == 0:
        timer = threading.Timer(1.0, lambda: dist.send(torch.ones(1), dst=1))
        timer.start()
        timer.join()
    else:
        dist.recv(x, src=0)
    return x
