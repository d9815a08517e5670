"""A rank ends itself with SIGTERM."""

import os
import signal
import time

FAILS = "SIGTERM"


def main(rank, world_size):
    if rank == 0:
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)
