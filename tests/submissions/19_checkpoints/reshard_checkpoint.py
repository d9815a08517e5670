import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, zeros


# %% right: DTensors of zeros
def reshard_checkpoint(folder, shapes, mesh):
    state = {
        name: zeros(shape, device_mesh=mesh, placements=[Shard(0)])
        for name, shape in shapes.items()
    }
    dcp.load(state, checkpoint_id=folder)
    return state


# %% right: empty ones, a reader named, the default placement spelled out
def reshard_checkpoint(folder, shapes, mesh):
    import torch.distributed.tensor as dt

    state = {}
    for name in shapes:
        state[name] = dt.empty(*shapes[name], device_mesh=mesh, placements=(Shard(0),))
    dcp.load(state, storage_reader=dcp.FileSystemReader(folder))
    return state


# %% right: cut from whole zeros first, then loaded
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: distribute_tensor(torch.zeros(s), mesh, [Shard(0)]) for n, s in shapes.items()}
    dcp.load(state_dict=state, checkpoint_id=folder)
    return dict(state)


# %% wrong: plain tensors | wrong | says: is a plain Tensor; wanted is a DTensor
def reshard_checkpoint(folder, shapes, mesh):
    whole = {n: torch.zeros(s) for n, s in shapes.items()}
    dcp.load(whole, checkpoint_id=folder)
    return whole


# %% wrong: only a part of the names | wrong | says: the key 'bias' is missing
def reshard_checkpoint(folder, shapes, mesh):
    name = next(iter(shapes))
    state = {name: zeros(shapes[name], device_mesh=mesh, placements=[Shard(0)])}
    dcp.load(state, checkpoint_id=folder)
    return state


# %% wrong: a file of torch.save is looked for | crashed | says: IsADirectoryError
def reshard_checkpoint(folder, shapes, mesh):
    whole = torch.load(folder)
    return {n: distribute_tensor(t, mesh, [Shard(0)]) for n, t in whole.items()}


# %% right: a load for each name
def reshard_checkpoint(folder, shapes, mesh):
    found = {}
    for name, shape in shapes.items():
        one = {name: zeros(shape, device_mesh=mesh, placements=[Shard(0)])}
        dcp.load(one, checkpoint_id=folder)
        found |= one
    return found
