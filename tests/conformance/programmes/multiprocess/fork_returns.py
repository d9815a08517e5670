"""A child of os.fork() comes back from the function that every rank runs."""

import os


def main(rank, world_size):
    pid = os.fork()
    if pid == 0:
        return "of the child"
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
