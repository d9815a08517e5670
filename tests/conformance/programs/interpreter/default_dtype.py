"""set_default_dtype on one rank is that rank's own."""

import torch


def main(rank, world_size):
    if rank == 0:
        torch.set_default_dtype(torch.float64)
    return torch.ones(1).dtype, torch.get_default_dtype()
