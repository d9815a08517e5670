"""GPipe over two stages: the last rank has the output of the whole."""

import torch
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def main(rank, world_size):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 4) for _ in range(world_size)]
    stage = PipelineStage(layers[rank], rank, world_size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4)
    x = torch.arange(32.0).reshape(8, 4)
    with torch.no_grad():
        out = schedule.step(x) if rank == 0 else schedule.step()
        whole = layers[1](layers[0](x))
    return torch.allclose(out, whole) if rank == world_size - 1 else out
