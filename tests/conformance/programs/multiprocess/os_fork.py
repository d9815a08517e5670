"""os.fork and waitpid, by hand."""

import os


def main(rank, world_size):
    pid = os.fork()
    if pid == 0:
        os._exit(5 + rank)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
