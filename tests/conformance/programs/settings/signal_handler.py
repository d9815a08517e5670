"""A handler of a signal, and a signal that is ignored."""

import os
import signal

SETS = True
GOT = []
signal.signal(signal.SIGUSR1, lambda number, frame: GOT.append(number))
signal.signal(signal.SIGUSR2, signal.SIG_IGN)


def main(rank, world_size):
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR2)
    return GOT == [signal.SIGUSR1]
