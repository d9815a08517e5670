"""1F1B with a loss: the gradients are those of the whole model."""

import torch
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def main(rank, world_size):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 4) for _ in range(world_size)]
    stage = PipelineStage(layers[rank], rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss)
    x, y, losses = torch.ones(8, 4), torch.zeros(8, 4), []
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=y, losses=losses)
    return [round(loss.item(), 5) for loss in losses], layers[rank].weight.grad.norm()
