"""A zero-bubble schedule splits backward in two."""

import torch
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


def main(rank, world_size):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(2, 2) for _ in range(4)]
    mine = [rank, rank + world_size]
    stages = [PipelineStage(layers[i], i, 4, torch.device("cpu")) for i in mine]
    schedule = ScheduleInterleavedZeroBubble(
        stages, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss
    )
    losses = []
    if rank == 0:
        schedule.step(torch.ones(4, 2))
    else:
        schedule.step(target=torch.zeros(4, 2), losses=losses)
    return len(losses), [layers[i].weight.grad is not None for i in range(4)]
