"""A batch of three rows in four microbatches: refused."""

import torch
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

FAILS = "ValueError"


def main(rank, world_size):
    stage = PipelineStage(torch.nn.Linear(2, 2), rank, world_size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4)
    return schedule.step(torch.ones(3, 2)) if rank == 0 else schedule.step()
