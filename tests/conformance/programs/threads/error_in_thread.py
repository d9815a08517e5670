"""An error in a thread is printed there and does not end the rank."""

import threading


def main(rank, world_size):
    seen = []
    threading.excepthook = lambda args: seen.append(args.exc_type.__name__)
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join()
    return seen
