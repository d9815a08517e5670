from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import mse_loss


def shard(model, mesh):
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


# %% each host for itself
# This is the mean over the ranks of one host: nothing is reduced between hosts.
def hsdp(rank, world_size, model, batches, per_host):
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=("a", "b"))
    shard(model, mesh["b"])
    for x, y in batches:
        mse_loss(model(x), y).backward()


# %% hosts are summed
# The hosts' gradients are added: average them.
def hsdp(rank, world_size, model, batches, per_host):
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=("a", "b"))
    shard(model, mesh["b"])
    for x, y in batches:
        mse_loss(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad.to_local(), group=mesh["a"].get_group())


# %% divided by the microbatches
# The gradients are divided by the number of microbatches: only add them up.
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    shard(model, init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names))
    for i, (x, y) in enumerate(batches):
        model.set_requires_all_reduce(i == len(batches) - 1)
        (mse_loss(model(x), y) / len(batches)).backward()


# %% gradients of the last one only
# These are the last microbatch's gradients: those of all microbatches add up.
def hsdp(rank, world_size, model, batches, per_host):
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=("a", "b"))
    shard(model, mesh["b"])
    for x, y in batches:
        model.zero_grad()
        mse_loss(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad.to_local(), op=dist.ReduceOp.AVG, group=mesh["a"].get_group())


# %% a mesh without names | crashed
# Name the two dimensions of the mesh: `mesh_dim_names=(...)`.
def hsdp(rank, world_size, model, batches, per_host):
    shard(model, init_device_mesh("cpu", (world_size // per_host, per_host)))
    for x, y in batches:
        mse_loss(model(x), y).backward()


# %% only the first microbatch is reduced between hosts
# Only the first microbatch is reduced between hosts: reduce with the last one, when the gradients of all
# have been added up.
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    shard(model, init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names))
    for i, (x, y) in enumerate(batches):
        model.set_requires_all_reduce(i == 0)
        mse_loss(model(x), y).backward()


# %% the layers without the model
# After the layers, call fully_shard(model, mesh=mesh).
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names)
    layers = [layer for layer in model if list(layer.parameters())]
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    for i, (x, y) in enumerate(batches):
        for layer in layers:
            layer.set_requires_all_reduce(i == len(batches) - 1)
        mse_loss(model(x), y).backward()
