"""The precision of one backend's products, set by name."""

import torch

SETS = True
torch.backends.mkldnn.matmul.fp32_precision = "bf16"


def main(rank, world_size):
    mkldnn = torch.backends.mkldnn
    return mkldnn.matmul.fp32_precision, mkldnn.conv.fp32_precision
