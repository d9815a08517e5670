"""All ranks have the same temp directory."""

import os
import tempfile

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    seen = [None] * world_size
    dist.all_gather_object(seen, (tempfile.gettempdir(), os.environ.get("TMPDIR")))
    return len(set(seen))
