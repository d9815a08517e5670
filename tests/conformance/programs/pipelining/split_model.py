"""A model is cut at a layer by its name with pipeline()."""

import torch
from torch.distributed.pipelining import ScheduleGPipe, SplitPoint, pipeline


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def main(rank, world_size):
    torch.manual_seed(0)
    net = Net()
    x = torch.ones(4, 4)
    pipe = pipeline(net, mb_args=(x[:2],), split_spec={"second": SplitPoint.BEGINNING})
    schedule = ScheduleGPipe(pipe.build_stage(rank, torch.device("cpu")), n_microbatches=2)
    if rank == 0:
        schedule.step(x)
        return pipe.num_stages
    return torch.allclose(schedule.step(), net(x))
