# %% embedding | An embedding table cut by rows.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module


def main(rank, world_size):
    torch.manual_seed(0)
    table = torch.nn.Embedding(10, 3)
    whole = table.weight.detach().clone()
    mesh = init_device_mesh("cpu", (world_size,))
    parallelize_module(table, mesh, RowwiseParallel(input_layouts=Replicate()))
    ids = torch.tensor([1, 9, 4])
    return torch.equal(table(ids), whole[ids])


# %% gradients | Gradients of the parts are the parts of the gradient.
import copy

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def main(rank, world_size):
    torch.manual_seed(0)
    whole = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    mesh = init_device_mesh("cpu", (world_size,))
    model = parallelize_module(
        copy.deepcopy(whole), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}
    )
    for net in (whole, model):
        net(torch.ones(2, 3)).sum().backward()
    pairs = zip(whole.parameters(), model.parameters(), strict=True)
    return [torch.allclose(p.grad, q.grad.full_tensor(), atol=1e-5) for p, q in pairs]


# %% loss_parallel | Cross entropy on logits that stay cut by class.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel


def main(rank, world_size):
    torch.manual_seed(0)
    logits = torch.randn(4, 6)
    mesh = init_device_mesh("cpu", (world_size,))
    cut = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()
    labels = torch.tensor([0, 5, 2, 3])
    with loss_parallel():
        loss = torch.nn.functional.cross_entropy(cut, labels)
        loss.backward()
    expected = torch.nn.functional.cross_entropy(logits, labels)
    return torch.allclose(loss.full_tensor(), expected), list(cut.grad.to_local().shape)


# %% mlp | Columns, then rows: a two-layer network cut over ranks has the whole network's results.
import copy

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def main(rank, world_size):
    torch.manual_seed(0)
    whole = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    mesh = init_device_mesh("cpu", (world_size,))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(copy.deepcopy(whole), mesh, plan)
    x = torch.arange(8.0).reshape(2, 4)
    return torch.allclose(model(x), whole(x), atol=1e-5), list(model[0].weight.to_local().shape)


# %% no_such_layer | A plan names a missing layer: torch warns and continues.
import warnings

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parallelize_module(model, mesh, {"layer7": ColwiseParallel()})
    return len(caught) > 0, type(model[0].weight).__name__


# %% sequence | Sequence parallelism: a LayerNorm computes a part of the sequence.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import (
    PrepareModuleInput,
    SequenceParallel,
    parallelize_module,
)


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    model = torch.nn.Sequential(torch.nn.LayerNorm(4))
    enter = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Shard(1))
    parallelize_module(model, mesh, {"": enter, "0": SequenceParallel()})
    y = model(torch.arange(8.0).reshape(1, 2, 4) + 8 * rank)
    return list(y.shape), list(y.to_local().shape)


# %% with_fsdp | Tensor parallel within pairs and fully_shard across them.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WORLD_SIZE = 4


def main(rank, world_size):
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 4))
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    loss = model(torch.ones(1, 4)).sum()
    loss.backward()
    return list(model[0].weight.to_local().shape), loss.detach()
