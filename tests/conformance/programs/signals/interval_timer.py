"""setitimer beats while main works; its handler counts."""

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
