from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import mse_loss


def shard(model, mesh):
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


# %% each host for itself
# Each host has the mean of its own ranks: nothing has travelled between the hosts.
def hsdp(rank, world_size, model, batches, per_host):
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=("a", "b"))
    shard(model, mesh["b"])
    for x, y in batches:
        mse_loss(model(x), y).backward()


# %% hosts are summed
# The hosts' gradients are added up: their mean is wanted.
def hsdp(rank, world_size, model, batches, per_host):
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=("a", "b"))
    shard(model, mesh["b"])
    for x, y in batches:
        mse_loss(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad.to_local(), group=mesh["a"].get_group())


# %% divided by the microbatches
# The gradients of the microbatches add up; they are not divided by their number.
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    shard(model, init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names))
    for i, (x, y) in enumerate(batches):
        model.set_requires_all_reduce(i == len(batches) - 1)
        (mse_loss(model(x), y) / len(batches)).backward()


# %% gradients of the last one only
# These are the gradients of the last microbatch: those of all add up.
def hsdp(rank, world_size, model, batches, per_host):
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=("a", "b"))
    shard(model, mesh["b"])
    for x, y in batches:
        model.zero_grad()
        mse_loss(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad.to_local(), op=dist.ReduceOp.AVG, group=mesh["a"].get_group())


# %% a mesh without names | crashed
# torch wants names for the two dimensions of the mesh: `mesh_dim_names=(...)`.
def hsdp(rank, world_size, model, batches, per_host):
    shard(model, init_device_mesh("cpu", (world_size // per_host, per_host)))
    for x, y in batches:
        mse_loss(model(x), y).backward()
