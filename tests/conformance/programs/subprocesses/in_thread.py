"""A thread runs a child process and captures what it says."""

import subprocess
import threading

import torch.distributed as dist


def main(rank, world_size):
    said = []

    def call():
        done = subprocess.run(["sh", "-c", "sleep 1.5; echo late"], capture_output=True, text=True)
        said.append(done.stdout.strip())

    if rank == 1:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    dist.barrier()
    return said
