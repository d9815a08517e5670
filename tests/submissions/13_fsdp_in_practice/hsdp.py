from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import mse_loss


def shard(model, mesh):
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


# %% right: a mesh of two dimensions
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    shard(model, init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names))
    for i, (x, y) in enumerate(batches):
        model.set_requires_all_reduce(i == len(batches) - 1)
        mse_loss(model(x), y).backward()


# %% right: a mesh inside each host, and one all_reduce between the hosts by hand
def hsdp(rank, world_size, model, batches, per_host):
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=("a", "b"))
    shard(model, mesh["b"])
    for x, y in batches:
        mse_loss(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad.to_local(), op=dist.ReduceOp.AVG, group=mesh["a"].get_group())


# %% right: weights stay whole until backward
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names)
    for layer in [m for m in model if sum(1 for _ in m.parameters())] + [model]:
        fully_shard(layer, mesh=mesh, reshard_after_forward=False)
    model.set_requires_all_reduce(False)
    for x, y in batches[:-1]:
        mse_loss(model(x), y).backward()
    model.set_requires_all_reduce(True)
    mse_loss(model(batches[-1][0]), batches[-1][1]).backward()


# %% wrong: one flat mesh | wrong | says: holds? one part in per_host|which are not on one host
def hsdp(rank, world_size, model, batches, per_host):
    shard(model, init_device_mesh("cpu", (world_size,)))
    for x, y in batches:
        mse_loss(model(x), y).backward()


# %% wrong: the dimensions are swapped | wrong | says: the first replicates and the second shards
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    shard(model, init_device_mesh("cpu", (per_host, world_size // per_host), mesh_dim_names=names))
    for i, (x, y) in enumerate(batches):
        model.set_requires_all_reduce(i == len(batches) - 1)
        mse_loss(model(x), y).backward()


# %% wrong: every microbatch goes between the hosts | wrong | says: Before the last microbatch nothing need
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    shard(model, init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names))
    for x, y in batches:
        mse_loss(model(x), y).backward()


# %% wrong: no scatter before the last one either | wrong | says: no rank holds whole gradients
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    shard(model, init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names))
    for i, (x, y) in enumerate(batches):
        model.set_requires_gradient_sync(i == len(batches) - 1)
        mse_loss(model(x), y).backward()


# %% wrong: the model as one group | wrong | says: Each layer, a group of its own, scatters in each microbatch
def hsdp(rank, world_size, model, batches, per_host):
    names = ("replicate", "shard")
    mesh = init_device_mesh("cpu", (world_size // per_host, per_host), mesh_dim_names=names)
    fully_shard(model, mesh=mesh)
    for i, (x, y) in enumerate(batches):
        model.set_requires_all_reduce(i == len(batches) - 1)
        mse_loss(model(x), y).backward()
