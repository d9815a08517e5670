"""A child of os.fork() comes back from the function that every rank runs."""

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
}


def main(rank, world_size):
    pid = os.fork()
    if pid == 0:
        return "of the child"
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
