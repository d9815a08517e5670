import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, zeros


# %% nothing is loaded
# The tensors still have their first values: `dcp.load` writes into the tensors that it is given.
def reshard_checkpoint(folder, shapes, mesh):
    return {n: zeros(s, device_mesh=mesh, placements=[Shard(0)]) for n, s in shapes.items()}


# %% read whole on every rank, then cut
# Whole tensors were read and then split. Pass `dcp.load` tensors that are sharded already: then each rank
# reads its own rows only, and a model larger than one rank's memory can be loaded.
def reshard_checkpoint(folder, shapes, mesh):
    whole = {n: torch.zeros(s) for n, s in shapes.items()}
    dcp.load(whole, checkpoint_id=folder)
    return {n: distribute_tensor(t, mesh, [Shard(0)]) for n, t in whole.items()}


# %% replicated
# Every rank holds whole tensors. Place them with `[Shard(0)]`.
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: zeros(s, device_mesh=mesh, placements=[Replicate()]) for n, s in shapes.items()}
    dcp.load(state, checkpoint_id=folder)
    return state


# %% nothing returned
# Nothing is returned. Return the dict from each name to its DTensor.
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: zeros(s, device_mesh=mesh, placements=[Shard(0)]) for n, s in shapes.items()}
    dcp.load(state, checkpoint_id=folder)


# %% what load gives back
# Nothing is returned. Return the dict from each name to its DTensor.
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: zeros(s, device_mesh=mesh, placements=[Shard(0)]) for n, s in shapes.items()}
    return dcp.load(state, checkpoint_id=folder)


# %% by columns
# The tensors are not split by rows. Place them with `[Shard(0)]`.
def reshard_checkpoint(folder, shapes, mesh):
    state = {
        n: zeros(s, device_mesh=mesh, placements=[Shard(len(s) - 1)]) for n, s in shapes.items()
    }
    dcp.load(state, checkpoint_id=folder)
    return state


# %% all of them loaded for each of them
# The same elements are read more than once. Load each tensor once.
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: zeros(s, device_mesh=mesh, placements=[Shard(0)]) for n, s in shapes.items()}
    for _ in shapes:
        dcp.load(state, checkpoint_id=folder)
    return state
