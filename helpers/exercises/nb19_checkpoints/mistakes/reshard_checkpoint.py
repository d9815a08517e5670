import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, zeros


# %% nothing is loaded
# `dcp.load` writes into the tensors that it is given.
def reshard_checkpoint(folder, shapes, mesh):
    return {n: zeros(s, device_mesh=mesh, placements=[Shard(0)]) for n, s in shapes.items()}


# %% read whole on every rank, then cut
# Whole tensors were read and then cut. Give `dcp.load` tensors that are sharded already: then each rank
# reads its rows only, and a model larger than one rank's memory can be loaded.
def reshard_checkpoint(folder, shapes, mesh):
    whole = {n: torch.zeros(s) for n, s in shapes.items()}
    dcp.load(whole, checkpoint_id=folder)
    return {n: distribute_tensor(t, mesh, [Shard(0)]) for n, t in whole.items()}


# %% replicated
# Then every rank holds too much of it: cut it by rows, `[Shard(0)]`.
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: zeros(s, device_mesh=mesh, placements=[Replicate()]) for n, s in shapes.items()}
    dcp.load(state, checkpoint_id=folder)
    return state


# %% nothing returned
# Return the dict from each name to its DTensor.
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: zeros(s, device_mesh=mesh, placements=[Shard(0)]) for n, s in shapes.items()}
    dcp.load(state, checkpoint_id=folder)


# %% what load gives back
# Return the dict from each name to its DTensor.
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: zeros(s, device_mesh=mesh, placements=[Shard(0)]) for n, s in shapes.items()}
    return dcp.load(state, checkpoint_id=folder)


# %% by columns
# Cut it by rows, `[Shard(0)]`.
def reshard_checkpoint(folder, shapes, mesh):
    state = {
        n: zeros(s, device_mesh=mesh, placements=[Shard(len(s) - 1)]) for n, s in shapes.items()
    }
    dcp.load(state, checkpoint_id=folder)
    return state


# %% all of them loaded for each of them
# The same elements are read more than once: load each tensor once.
def reshard_checkpoint(folder, shapes, mesh):
    state = {n: zeros(s, device_mesh=mesh, placements=[Shard(0)]) for n, s in shapes.items()}
    for _ in shapes:
        dcp.load(state, checkpoint_id=folder)
    return state
