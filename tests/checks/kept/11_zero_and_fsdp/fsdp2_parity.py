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


# %% wrong: nobody broadcasts | wrong | says: broadcast them before fully_shard


# %% wrong: broadcast after sharding | crashed | says: before fully_shard


# %% right: buffers of one dtype, set_to_none=False, a detached dict
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    share_weights(model)
    shard(model, world_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return {name: p.full_tensor().detach() for name, p in model.named_parameters()}


# %% wrong: the last rank's weights count | wrong | says: broadcast them before fully_shard
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    share_weights(model, world_size - 1)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% wrong: a copy of the model is sharded | wrong | says: for each layer that has parameters
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    import copy

    share_weights(model)
    model = copy.deepcopy(model)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% wrong: one step too many | wrong | says: elements differ
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    share_weights(model)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps + 1)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% wrong: numbers in place of names | wrong | says: names do not change under fully_shard
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    share_weights(model)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {i: p.full_tensor() for i, p in enumerate(model.parameters())}
