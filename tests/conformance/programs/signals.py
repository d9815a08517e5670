# %% abort | os.abort on rank 1.
import os

import torch.distributed as dist

FAILS = "SIGABRT"


def main(rank, world_size):
    if rank == 1:
        os.abort()
    dist.barrier()


# %% alarm | signal.alarm and a handler that raises: a time limit for a slow part.
import signal
import time


class TooSlow(Exception):
    pass


def ring(number, frame):
    raise TooSlow


def main(rank, world_size):
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(1)
    try:
        time.sleep(10)
    except TooSlow:
        return "stopped after a second"


# %% alarm_in_collective | An alarm without a handler kills the rank while it waits in a receive.
import signal

import torch
import torch.distributed as dist

FAILS = "SIGALRM"


def main(rank, world_size):
    if rank == 1:
        import time

        time.sleep(20)
    signal.alarm(1)
    dist.recv(torch.zeros(1), src=1)


# %% broken_pipe | A write into a pipe without a reader raises an error instead of killing the process.
import os

FAILS = "BrokenPipeError"


def main(rank, world_size):
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b"x")


# %% default_handlers | The signal handlers of a new process.
import signal


def main(rank, world_size):
    names = ["SIGTERM", "SIGUSR1", "SIGALRM", "SIGCHLD", "SIGHUP"]
    return {n: signal.getsignal(getattr(signal, n)) is signal.SIG_DFL for n in names}


# %% exit_handlers | atexit handlers run when a worker of torchrun succeeds.
import atexit

LIKE = "torchrun"
DIFFERS = {
    "ranks": (
        [0, 1],
        "ranks stay after a cell, so what they do at their end is not done at its end",
    ),
}


def main(rank, world_size):
    atexit.register(print, "the last thing on rank", rank)
    return rank


# %% exit_text | sys.exit with a text, which is printed.
import sys

FAILS = "SystemExit"
DIFFERS = {
    "untraced": (
        "SystemExit",
        "the text is shown once, as the message of the error, and not printed as well",
    ),
    "launch": (
        "SystemExit",
        "the text is shown once, as the message of the error, and not printed as well",
    ),
    "ranks": (
        "SystemExit",
        "the text is shown once, as the message of the error, and not printed as well",
    ),
}


def main(rank, world_size):
    sys.exit("no data found")


# %% exit_three | sys.exit(3) on one rank while the other waits.
import sys

import torch.distributed as dist

FAILS = "SystemExit"


def main(rank, world_size):
    if rank == 1:
        sys.exit(3)
    dist.barrier()


# %% exit_zero | sys.exit() in main, with success.
import sys

FAILS = "SystemExit"
DIFFERS = {
    "untraced": (
        [None, None],
        "to leave with success is to return nothing, as it is for a job that starts the rank",
    ),
    "launch": (
        [None, None],
        "to leave with success is to return nothing, as it is for a job that starts the rank",
    ),
    "ranks": (
        [None, None],
        "to leave with success is to return nothing, as it is for a job that starts the rank",
    ),
    "script": (
        [None, None],
        "to leave with success is to return nothing, as it is for a job that starts the rank",
    ),
}


def main(rank, world_size):
    sys.exit()


# %% interval_timer | setitimer fires repeatedly while main works; its handler counts.
import signal
import time


def main(rank, world_size):
    beats = []
    signal.signal(signal.SIGALRM, lambda number, frame: beats.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        time.sleep(0.01)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return len(beats) >= 3


# %% keyboard_interrupt | raise KeyboardInterrupt in main.
FAILS = "KeyboardInterrupt"


def main(rank, world_size):
    raise KeyboardInterrupt


# %% kill_self | A rank kills itself while the other waits for its message.
import os
import signal

import torch
import torch.distributed as dist

FAILS = "SIGKILL"


def main(rank, world_size):
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.recv(torch.zeros(1), src=0)


# %% os_exit | os._exit(4) on rank 0: its process exits at once.
import os

import torch.distributed as dist

FAILS = "exit 4"


def main(rank, world_size):
    if rank == 0:
        os._exit(4)
    dist.barrier()


# %% segfault | A read of address zero.
import ctypes

FAILS = "SIGSEGV"


def main(rank, world_size):
    if rank == 0:
        ctypes.string_at(0)
    import time

    time.sleep(20)


# %% terminate_self | A rank kills itself with SIGTERM.
import os
import signal
import time

FAILS = "SIGTERM"


def main(rank, world_size):
    if rank == 0:
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)


# %% usr1 | A handler for SIGUSR1, which the rank sends to itself.
import os
import signal


def main(rank, world_size):
    got = []
    signal.signal(signal.SIGUSR1, lambda number, frame: got.append(signal.Signals(number).name))
    os.kill(os.getpid(), signal.SIGUSR1)
    return got


# %% usr1_to_peer | A rank sends SIGUSR1 to the other rank, whose pid it knows.
import os
import signal
import time

import torch.distributed as dist


def main(rank, world_size):
    got = []
    signal.signal(signal.SIGUSR1, lambda number, frame: got.append("usr1"))
    pids = [None] * world_size
    dist.all_gather_object(pids, os.getpid())
    if rank == 0:
        os.kill(pids[1], signal.SIGUSR1)
    deadline = time.monotonic() + 10
    while rank == 1 and not got and time.monotonic() < deadline:
        time.sleep(0.01)
    dist.barrier()
    return got
