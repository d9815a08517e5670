"""Two stages on each rank, interleaved."""

import torch
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B


def main(rank, world_size):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(2, 2) for _ in range(4)]
    mine = [rank, rank + world_size]
    stages = [PipelineStage(layers[i], i, 4, torch.device("cpu")) for i in mine]
    schedule = ScheduleInterleaved1F1B(
        stages, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss
    )
    x, y, losses = torch.ones(4, 2), torch.zeros(4, 2), []
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=y, losses=losses)
    return len(losses), [layers[i].weight.grad is not None for i in range(4)]
