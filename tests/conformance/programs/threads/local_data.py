"""threading.local keeps each thread's own value."""

import threading


def main(rank, world_size):
    own = threading.local()
    own.value, others = rank, []

    def look():
        own.value = 100
        others.append(own.value)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return own.value, others
