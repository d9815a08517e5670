# %% by_hand | A pipeline of three ranks by hand, with backward through received tensors.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 2)
    x = torch.ones(1, 2)
    if rank > 0:
        dist.recv(x, src=rank - 1)
        x.requires_grad_()
    y = layer(x)
    if rank < world_size - 1:
        dist.send(y.detach(), dst=rank + 1)
        grad = torch.empty_like(y)
        dist.recv(grad, src=rank + 1)
        y.backward(grad)
    else:
        y.sum().backward()
    if rank > 0:
        dist.send(x.grad, dst=rank - 1)
    return layer.weight.grad


# %% gpipe | GPipe over two stages: the last rank has the output of the whole.
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


# %% interleaved | Two stages on each rank, interleaved.
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


# %% one_forward_one_backward | 1F1B with a loss: the gradients are equal to the whole model's.
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


# %% split_model | A model is cut at a layer by its name with pipeline().
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


# %% too_few_microbatches | A batch of three rows in four microbatches is refused.
import torch
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

FAILS = "ValueError"


def main(rank, world_size):
    stage = PipelineStage(torch.nn.Linear(2, 2), rank, world_size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4)
    return schedule.step(torch.ones(3, 2)) if rank == 0 else schedule.step()


# %% zero_bubble | A zero-bubble schedule splits backward in two.
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
