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


# %% right: broadcast, shard, optimizer, train, full_tensor
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% right: a flat broadcast, layers by their type, state_dict
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    flat = parameters_to_vector(model.parameters()).detach()
    dist.broadcast(flat, 0)
    vector_to_parameters(flat, model.parameters())
    mesh = init_device_mesh("cpu", (world_size,))
    for m in model.modules():
        if isinstance(m, (torch.nn.Linear, torch.nn.LayerNorm)):
            fully_shard(m, mesh=mesh, reshard_after_forward=True)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    for _ in range(steps):
        model.zero_grad()
        loss = torch.nn.CrossEntropyLoss()(model(x), y)
        loss.backward()
        optimizer.step()
    return {k: v.full_tensor().detach().clone() for k, v in model.state_dict().items()}


# %% right: redistributed by hand, broadcast under no_grad
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    from torch.distributed.tensor import Replicate

    with torch.no_grad():
        for value in model.state_dict().values():
            dist.broadcast(value, 0)
    shard(model, world_size)
    optimizer = torch.optim.Adam([{"params": model.parameters(), "lr": lr}])
    train(model, optimizer, x, y, steps)
    return {
        n: p.detach().redistribute(placements=[Replicate()]).to_local()
        for n, p in model.named_parameters()
    }


# %% wrong: the whole model is one group | wrong | says: fully_shard on each layer first
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    fully_shard(model, mesh=init_device_mesh("cpu", (world_size,)))
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% wrong: nothing is sharded | wrong | says: only broadcast, all_gather and reduce_scatter
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        optimizer.step()
    return {name: p.detach() for name, p in model.named_parameters()}


# %% wrong: DDP in its place | wrong | says: parameters of `model` are sharded
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    train(ddp, torch.optim.Adam(ddp.parameters(), lr=lr), x, y, steps)
    return {name: p.detach() for name, p in model.named_parameters()}


# %% wrong: a list comes back | wrong | says: a dict from name to tensor is wanted
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    shard(model, world_size)
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps)
    return [p.full_tensor().detach() for p in model.parameters()]


# %% wrong: the layers without the model | wrong | says: `model` itself is not
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% wrong: weights stay whole after forward | wrong | says: reshard_after_forward=False
def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh, reshard_after_forward=False)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% right: buffers of one dtype, set_to_none=False, a detached dict
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
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return {name: p.full_tensor().detach() for name, p in model.named_parameters()}


# %% wrong: one step too many | wrong | says: elements differ
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
    train(model, torch.optim.Adam(model.parameters(), lr=lr), x, y, steps + 1)
    return {name: p.full_tensor() for name, p in model.named_parameters()}


# %% wrong: only the linear layers are groups of their own | wrong | says: while it trains; \d+ are right
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def fsdp2_parity(rank, world_size, model, x, y, steps, lr):
    flat = parameters_to_vector(model.parameters()).detach()
    dist.broadcast(flat, 0)
    vector_to_parameters(flat, model.parameters())
    mesh = init_device_mesh("cpu", (world_size,))
    for m in model.modules():
        if isinstance(m, torch.nn.Linear):
            fully_shard(m, mesh=mesh, reshard_after_forward=True)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    for _ in range(steps):
        model.zero_grad()
        loss = torch.nn.CrossEntropyLoss()(model(x), y)
        loss.backward()
        optimizer.step()
    return {k: v.full_tensor().detach().clone() for k, v in model.state_dict().items()}
