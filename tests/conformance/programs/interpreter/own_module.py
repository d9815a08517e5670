"""Rank 0 writes a module beside the programme; all ranks import it."""

import os
import sys

import torch.distributed as dist


def main(rank, world_size):
    if rank == 0:
        with open("conformance_made.py", "w") as file:
            file.write("def answer():\n    return 42\n")
    dist.barrier()
    sys.path.insert(0, os.getcwd())
    import conformance_made

    return conformance_made.answer()
