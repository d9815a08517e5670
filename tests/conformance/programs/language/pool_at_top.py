"""A pool of threads at the top, with a name and an initializer."""

import threading
from concurrent.futures import ThreadPoolExecutor

LOCAL = threading.local()


def begin(value):
    LOCAL.value = value


POOL = ThreadPoolExecutor(2, thread_name_prefix="mine", initializer=begin, initargs=(7,))


def main(rank, world_size):
    name = POOL.submit(lambda: threading.current_thread().name.split("_")[0]).result()
    return name, POOL.submit(lambda: LOCAL.value).result()
