"""A daemon thread loops for ever; main returns nevertheless."""

import threading
import time


def main(rank, world_size):
    def forever():
        while True:
            time.sleep(0.05)

    threading.Thread(target=forever, daemon=True).start()
    return "main is done"
