"""PowerSGD: low-rank gradients after the first steps."""

import torch
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(16, 16, bias=False))
    state = powerSGD.PowerSGDState(
        None, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=1
    )
    model.register_comm_hook(state, powerSGD.powerSGD_hook)
    torch.manual_seed(rank)
    for _ in range(4):
        model.zero_grad()
        model(torch.randn(4, 16)).square().mean().backward()
    return int(torch.linalg.matrix_rank(model.module.weight.grad, atol=1e-5))
