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
# The ranks start with different weights: broadcast rank 0's before fully_shard.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% the optimizer is made first
# The weights have not changed: fully_shard puts new parameters into the model, so make the optimizer after
# it.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    shard(model, world_size)
    train(model, optimizer, x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% DTensors come back
# The values are DTensors: `p.full_tensor()` gathers the whole weight, on every rank.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return dict(model.named_parameters())


# %% each rank's own shard comes back
# These are the rank's own shards: `p.full_tensor()` gathers the whole weight, on every rank.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.to_local() for name, p in model.named_parameters()}


# %% rank 0 alone gathers | deadlocked
# Forward, backward and full_tensor() are collective calls: all ranks must make them, even if only one needs
# the result.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()} if rank == 0 else {}


# %% the loss is divided by the world size
# These are the steps of SGD with gradients that are divided once more. Use Adam; fully_shard averages the
# gradients already.
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
# Shards are cut by rows and may have different sizes: broadcast whole weights, before fully_shard.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    shard(model, world_size)
    for p in model.parameters():
        dist.broadcast(p.to_local().data, src=0)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% without zero_grad
# The gradients of all steps add up: call zero_grad() before each backward.
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
# These are the steps of SGD: use Adam.
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
# These are not rank 0's weights at the start: broadcast them from rank 0, before fully_shard.
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
# `model` must be sharded at the end: call fully_shard(layer, mesh=mesh) for each layer that has parameters,
# then fully_shard(model, mesh=mesh), and leave out unshard().
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
# Return, on every rank, a dict with the names of `model.named_parameters()`, which do not change under
# fully_shard.
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


# %% the model is sharded before its layers | crashed
# Shard the layers first and the model last: fully_shard(model) takes all parameters that no layer has taken
# yet.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    mesh = init_device_mesh("cpu", (world_size,))
    fully_shard(model, mesh=mesh)
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% the sum of the losses
# The loss is a sum over the samples (reduction="sum"): use the mean. Adam nearly hides such a factor, but
# not entirely.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y, reduction="sum").backward()
        optimizer.step()
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% the loss divided by the world size, under Adam
# The loss is divided by the world size, but fully_shard averages the gradients already. Adam nearly hides
# such a factor, but not entirely.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        (cross_entropy(model(x), y) / world_size).backward()
        optimizer.step()
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% only Linear layers get the broadcast
# The ranks start with different weights in some layers: broadcast all of `model.parameters()`, not only
# those of Linear layers.
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            for p in layer.parameters():
                dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}
