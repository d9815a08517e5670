"""signal.alarm and a handler that raises: a time limit for a slow part."""

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
