"""What torch says about GPUs where there are none for the rank."""

import torch


def main(rank, world_size):
    with torch.device("cpu"):
        x = torch.ones(1)
    return x.device, torch.cuda.is_initialized(), torch.get_default_device()
