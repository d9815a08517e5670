# %% collective | An all_reduce within a compiled function.
import torch
import torch.distributed as dist


def main(rank, world_size):
    @torch.compile(backend="aot_eager")
    def f(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    return f(torch.tensor([1.0, rank]))


# %% ddp | A compiled DDP model trains one step.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.compile(DDP(torch.nn.Linear(4, 2)), backend="aot_eager")
    model(torch.ones(2, 4) * (rank + 1)).sum().backward()
    return [p.grad for p in model.parameters()]


# %% ddp_of_compiled | DDP around a compiled module.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.compile(torch.nn.Linear(4, 2), backend="aot_eager"))
    model(torch.ones(2, 4) * (rank + 1)).sum().backward()
    return [p.grad for p in model.parameters()]


# %% decorated | A function of the cell with @torch.compile above it.
import torch


@torch.compile(backend="aot_eager")
def scaled(x, y):
    return (x * y).sum() + x.shape[0]


def main(rank, world_size):
    return scaled(torch.arange(3.0), torch.ones(3) * rank)


# %% disabled | torch.compiler.disable and is_compiling.
import torch


@torch.compiler.disable
def look():
    return torch.compiler.is_compiling()


def main(rank, world_size):
    @torch.compile(backend="eager")
    def f(x):
        return x + (1 if torch.compiler.is_compiling() else 0)

    return f(torch.zeros(1)), look()


# %% eager_backend | torch.compile with the backend "eager": only dynamo.
import torch


def main(rank, world_size):
    @torch.compile(backend="eager")
    def f(x):
        return torch.sin(x) + x.relu() * 2

    return f(torch.tensor([-1.0, 0.0, 1.0]) * (rank + 1))


# %% exported | torch.export of a module of the cell.
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def main(rank, world_size):
    program = torch.export.export(Net(), (torch.ones(2),))
    return program.module()(torch.tensor([-1.0, float(rank)]))


# %% fullgraph_error | fullgraph=True over a break of the graph is an error.
import torch

FAILS = "Unsupported"


def main(rank, world_size):
    @torch.compile(backend="eager", fullgraph=True)
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    return f(torch.ones(1))


# %% functional_fullgraph | Functional collectives in one whole graph.
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol


def main(rank, world_size):
    group = dist.group.WORLD

    @torch.compile(backend="aot_eager", fullgraph=True)
    def f(x):
        return funcol.all_reduce(x + 1, "sum", group) * 2

    return f(torch.tensor([float(rank)]))


# %% graph_break_print | A print in a compiled function.
import torch


def main(rank, world_size):
    @torch.compile(backend="eager")
    def f(x):
        x = x + 1
        print("in the middle of rank", rank)
        return x * 2

    return f(torch.ones(1))


# %% module | A compiled module, forward and backward.
import torch


def main(rank, world_size):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU(), torch.nn.Linear(3, 1))
    fast = torch.compile(net, backend="aot_eager")
    fast(torch.ones(2, 3)).sum().backward()
    return net[0].weight.grad


# %% scripted | torch.jit.script of a function of the cell.
import torch


def poly(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(n):
        out = out + x**i
    return out


def main(rank, world_size):
    return torch.jit.script(poly)(torch.tensor([2.0]), 3 + rank)


# %% send_recv | send and recv within compiled functions break the graph and still work.
import torch
import torch.distributed as dist


def main(rank, world_size):
    @torch.compile(backend="eager")
    def exchange(x):
        if rank == 0:
            dist.send(x + 1, dst=1)
        else:
            dist.recv(x, src=0)
        return x * 10

    return exchange(torch.tensor([float(rank)]))
