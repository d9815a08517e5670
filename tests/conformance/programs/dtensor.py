# %% distribute | A tensor cut by rows, and put together again.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

WORLD_SIZE = 3


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    x = torch.arange(14.0).reshape(7, 2)
    d = distribute_tensor(x, mesh, [Shard(0)])
    return d.to_local(), torch.equal(d.full_tensor(), x)


# %% factories | ones, zeros and full made in parts.
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, full, ones, zeros


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    x = ones(4, 2, device_mesh=mesh, placements=[Shard(0)])
    y = zeros(4, 2, device_mesh=mesh, placements=[Shard(0)])
    z = full((4, 2), 0.5, device_mesh=mesh, placements=[Shard(0)])
    return (x + y).full_tensor().sum(), tuple(z.to_local().shape)


# %% gradient | backward through sharded tensors.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    w = torch.nn.Parameter(distribute_tensor(torch.arange(6.0).reshape(2, 3), mesh, [Shard(0)]))
    w.pow(2).sum().backward()
    return w.grad.full_tensor()


# %% local_map | local_map runs a plain function on the local parts.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.experimental import local_map


def double(x):
    return x * 2 + x.shape[0]


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    d = distribute_tensor(torch.arange(6.0), mesh, [Shard(0)])
    mapped = local_map(double, out_placements=[Shard(0)], device_mesh=mesh)
    return mapped(d).full_tensor()


# %% matmul | A product of DTensors: the placements of the result follow from those of its parts.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    a = distribute_tensor(torch.arange(8.0).reshape(2, 4), mesh, [Replicate()])
    b = distribute_tensor(torch.arange(8.0).reshape(4, 2), mesh, [Shard(1)])
    y = a @ b
    return str(y.placements), y.full_tensor()


# %% mixed_error | A DTensor and a plain tensor in one product: an error.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

FAILS = "RuntimeError"


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    d = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)])
    return (d * torch.ones(4, 2)).to_local()


# %% redistribute | From rows to columns, from partial sums to a whole.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    part = DTensor.from_local(torch.full((2, 2), rank + 1.0), mesh, [Partial()])
    whole = part.redistribute(placements=[Replicate()])
    columns = whole.redistribute(placements=[Shard(1)])
    return whole.to_local(), columns.to_local()


# %% returned | main returns an unchanged DTensor.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

DIFFERS = {
    "untraced": (
        "CannotReturn",
        "only plain data comes back from a rank; the error names to_local",
    ),
    "launch": ("CannotReturn", "only plain data comes back from a rank; the error names to_local"),
    "ranks": ([None, None], "a cell's value that is not plain data is printed on the rank"),
}


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    return distribute_tensor(torch.ones(2), mesh, [Shard(0)])
