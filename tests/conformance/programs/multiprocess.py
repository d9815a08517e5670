# %% child_fails | A child that fails: its exit code shows it.
import multiprocessing
import os


def fail():
    os._exit(9)


def main(rank, world_size):
    child = multiprocessing.get_context("fork").Process(target=fail)
    child.start()
    child.join()
    return child.exitcode


# %% executor | A ProcessPoolExecutor with a function of the cell.
import multiprocessing
from concurrent.futures import ProcessPoolExecutor


def cube(x):
    return x**3


def main(rank, world_size):
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(cube, [1, 2, 3 + rank]))


# %% fork_leaves | Children of os.fork() exit by sys.exit or an exception; the rank reads their exit codes.
import os
import sys

INIT = (
    False  # a child that leaves Python with a gloo group joins threads that the fork did not copy
)


def child_of(leave):
    pid = os.fork()
    if pid == 0:
        leave()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fails():
    raise ValueError("in the child")


def main(rank, world_size):
    sys.stderr = open(os.devnull, "w")
    return child_of(sys.exit), child_of(lambda: sys.exit(3 + rank)), child_of(fails)


# %% fork_returns | A child of os.fork() returns from the function that every rank runs.
import os

FAILS = "hang"
DIFFERS = {
    "untraced": (
        [0, 0],
        "plainly the child waits in its group's destructor for threads that are not forked",
    ),
    "launch": (
        [0, 0],
        "plainly the child waits in its group's destructor for threads that are not forked",
    ),
    "ranks": (
        [0, 0],
        "plainly the child waits in its group's destructor for threads that are not forked",
    ),
    "script": (
        [0, 0],
        "plainly the child waits in its group's destructor for threads that are not forked",
    ),
}


def main(rank, world_size):
    pid = os.fork()
    if pid == 0:
        return "of the child"
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# %% manager | A manager's dictionary, written by two children.
import multiprocessing


def note(shared, i):
    shared[i] = i * 10


def main(rank, world_size):
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        shared = manager.dict()
        children = [context.Process(target=note, args=(shared, i)) for i in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        return sorted(shared.items())


# %% os_fork | os.fork and waitpid, by hand.
import os


def main(rank, world_size):
    pid = os.fork()
    if pid == 0:
        os._exit(5 + rank)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


# %% pipe_and_late | A child process answers by a pipe after a second and a half.
import multiprocessing
import time

import torch.distributed as dist


def answer(end):
    time.sleep(1.5)
    end.send("at last")


def main(rank, world_size):
    got = None
    if rank == 0:
        context = multiprocessing.get_context("fork")
        mine, other = context.Pipe()
        child = context.Process(target=answer, args=(other,))
        child.start()
        got = mine.recv()
        child.join()
    dist.barrier()
    return got


# %% pool_fork | A pool of forked processes on each rank.
import multiprocessing


def square(x):
    return x * x


def main(rank, world_size):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(square, range(5 + rank))


# %% process_names | multiprocessing's names of the rank's process.
import multiprocessing


def main(rank, world_size):
    process = multiprocessing.current_process()
    return process.daemon, multiprocessing.active_children()


# %% queue | A child process puts tensors' values into a queue.
import multiprocessing

import torch


def work(queue, rank):
    queue.put(torch.arange(3).mul(rank + 1).tolist())


def main(rank, world_size):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue, rank))
    child.start()
    got = queue.get(timeout=20)
    child.join()
    return got, child.exitcode


# %% shared_tensor | A tensor in shared memory, changed by a child.
import torch
import torch.multiprocessing as mp


def fill(x):
    x.fill_(7.0)


def main(rank, world_size):
    x = torch.zeros(3).share_memory_()
    child = mp.get_context("fork").Process(target=fill, args=(x,))
    child.start()
    child.join()
    return x


# %% spawn_child | A rank spawns a child with a function from one of torch's modules.
import math
import multiprocessing


def main(rank, world_size):
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.map(math.factorial, [3, 4])


# %% spawn_pool | A pool of spawned processes runs a function of the program.
import multiprocessing

START = 100


def shifted(number):
    return START + number


def main(rank, world_size):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(shifted, [rank, 7])
