"""Join by a tcp:// address given by hand."""

import torch
import torch.distributed as dist

INIT = False


def main(rank, world_size):
    dist.init_process_group(
        "gloo", init_method="tcp://127.0.0.1:23456", rank=rank, world_size=world_size
    )
    x = torch.tensor([2.0 * rank])
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x
