"""gc finds the tensors that a rank holds."""

import gc

import torch


def main(rank, world_size):
    kept = [torch.zeros(1234) for _ in range(5)]
    found = [o for o in gc.get_objects() if type(o) is torch.Tensor and o.shape == (1234,)]
    return len(found), len(kept)
