"""Rank 0 ends a TCPStore of its own while rank 1 waits for a key of it: the kind of error is caught."""

from datetime import timedelta

import torch.distributed as dist


def main(rank, world_size):
    default = dist.distributed_c10d._get_default_store()
    if rank == 0:
        own = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        default.set("port", str(own.port))
        own.get("rank 1 is there")
        del own
        return "done"
    port = int(default.get("port"))
    own = dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=20))
    own.set("rank 1 is there", "")
    try:
        own.get("set by nobody")
    except Exception as error:
        return type(error).__name__
