"""subprocess.run with captured output, while the other rank waits."""

import subprocess
import sys

import torch.distributed as dist


def main(rank, world_size):
    said = ""
    if rank == 0:
        code = "import time; time.sleep(1.5); print('from a child')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        said = done.stdout.strip()
    dist.barrier()
    return said
