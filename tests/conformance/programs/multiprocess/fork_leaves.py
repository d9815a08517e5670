"""Children of os.fork() leave by sys.exit and by an exception; the rank reads their exit codes."""

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
