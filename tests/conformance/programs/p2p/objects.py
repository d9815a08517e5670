"""Objects go from rank to rank by send_object_list and recv_object_list."""

import torch.distributed as dist


def main(rank, world_size):
    if rank == 0:
        dist.send_object_list([{"a": [1, 2]}, "text", (3.5, None)], dst=1)
        return None
    got = [None, None, None]
    source = dist.recv_object_list(got, src=0)
    return got, source
