"""The device chosen at module level, as most scripts have it."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.float32


def main(rank, world_size):
    return torch.ones(2, dtype=DTYPE, device="cpu") * rank, device.type in {"cpu", "cuda"}
