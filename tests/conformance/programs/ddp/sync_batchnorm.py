"""SyncBatchNorm is for GPUs: on the CPU it says so."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "ValueError"


def main(rank, world_size):
    net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm1d(2))
    model = DDP(net)
    return model(torch.ones(4, 2))
