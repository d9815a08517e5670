"""Tensors of each dtype, empty ones, scalars and views."""

import torch


def main(rank, world_size):
    dtypes = [torch.bool, torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16]
    dtypes += [torch.float64, torch.complex64]
    each = {str(d): torch.tensor([0, 1, 2]).to(d) for d in dtypes}
    x = torch.arange(12).reshape(3, 4)
    return each, torch.empty(0, 3), torch.tensor(7), x.t(), x[::2, 1:], x.expand(2, 3, 4)
