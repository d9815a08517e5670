"""A hundred messages in flight, waited for at the end."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    other = 1 - rank
    boxes = [torch.zeros(1) for _ in range(100)]
    waits = [dist.irecv(box, src=other, tag=i) for i, box in enumerate(boxes)]
    gone = [torch.tensor([rank * 1000.0 + i]) for i in range(100)]
    waits += [dist.isend(x, dst=other, tag=i) for i, x in enumerate(gone)]
    for work in waits:
        work.wait()
    return sum(box.item() for box in boxes)
