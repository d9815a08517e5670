from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy


def shard(model, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def train(model, optimizer, x, y, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()


# %% nobody broadcasts
# Rank 0's weights count: broadcast them before fully_shard, which cuts what each rank has.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% the optimizer is made first
# The weights have not moved: fully_shard puts new parameters into the model, so make the optimizer after
# it.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    shard(model, world_size)
    train(model, optimizer, x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% DTensors come back
# `p.full_tensor()` gathers the whole weight, on every rank.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return dict(model.named_parameters())


# %% each rank's own shard comes back
# `p.full_tensor()` gathers the whole weight, on every rank.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.to_local() for name, p in model.named_parameters()}


# %% rank 0 alone gathers | deadlocked
# Forward, backward and full_tensor() are collective calls: all ranks make all of them, also where only
# one rank wants the result.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()} if rank == 0 else {}


# %% the loss is divided by the world size
# These are the steps of SGD, from divided gradients. The task wants Adam, and fully_shard averages the
# gradients: no other division.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        (cross_entropy(model(x), y) / world_size).backward()
        optimizer.step()
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% broadcast after sharding | crashed
# Shards are dealt out by rows, and may be of different sizes: whole weights are broadcast, before
# fully_shard.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    shard(model, world_size)
    for p in model.parameters():
        dist.broadcast(p.to_local().data, src=0)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% without zero_grad
# The gradients of all steps add up: zero_grad() comes before each backward.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% SGD
# These are the steps of SGD; the task wants Adam.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% the last rank's weights count
# Rank 0's weights count: broadcast them before fully_shard, which cuts what each rank has.
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy


def shard(model, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def train(model, optimizer, x, y, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()


def share_weights(model, src=0):
    for p in model.parameters():
        dist.broadcast(p.data, src=src)


def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    share_weights(model, world_size - 1)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% a copy of the model is sharded
# Call fully_shard(layer, mesh=mesh) for each layer that has parameters, then fully_shard(model,
# mesh=mesh).
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy


def shard(model, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def train(model, optimizer, x, y, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()


def share_weights(model, src=0):
    for p in model.parameters():
        dist.broadcast(p.data, src=src)


def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    import copy

    share_weights(model)
    model = copy.deepcopy(model)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% numbers in place of names
# Use `model.named_parameters()`: its names do not change under fully_shard.
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy


def shard(model, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def train(model, optimizer, x, y, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()


def share_weights(model, src=0):
    for p in model.parameters():
        dist.broadcast(p.data, src=src)


def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    share_weights(model)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {i: p.full_tensor() for i, p in enumerate(model.parameters())}
