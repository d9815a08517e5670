"""A producer thread fills a queue, main sends what it takes out."""

import queue
import threading

import torch
import torch.distributed as dist


def main(rank, world_size):
    if rank == 1:
        got = []
        for _ in range(5):
            x = torch.zeros(1)
            dist.recv(x, src=0)
            got.append(x.item())
        return got
    q = queue.Queue(maxsize=1)
    thread = threading.Thread(target=lambda: [q.put(i * 2.0) for i in range(5)])
    thread.start()
    for _ in range(5):
        dist.send(torch.tensor([q.get()]), dst=1)
    thread.join()
    return "sent"
