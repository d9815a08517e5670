"""How many threads of Python there are: main's own and the one that main started."""

import threading


def main(rank, world_size):
    before = threading.active_count()
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    during = threading.active_count()
    event.set()
    thread.join()
    return before, during, threading.current_thread() is threading.main_thread()
