from torch.nn.functional import pad


# %% right: cat, pad, AVG
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard


# %% right: the list form, filled by hand, divided afterwards
def reduce_scatter_gradients(params: list[torch.nn.Parameter]) -> torch.Tensor:
    total = sum(p.numel() for p in params)
    size = (total + dist.get_world_size() - 1) // dist.get_world_size()
    buffer = torch.zeros(size * dist.get_world_size(), dtype=params[0].dtype)
    at = 0
    for p in params:
        buffer[at : at + p.numel()] = p.grad.reshape(-1)
        at += p.numel()
        p.grad = None
    shard = torch.zeros(size, dtype=params[0].dtype)
    dist.reduce_scatter(shard, list(buffer.split(size)))
    shard /= dist.get_world_size()
    return shard


# %% right: asynchronous, parameters_to_vector
from torch.nn.utils import parameters_to_vector


def reduce_scatter_gradients(params):
    world_size = dist.get_world_size()
    flat = parameters_to_vector([p.grad for p in params]) / world_size
    flat = torch.cat([flat, flat.new_zeros(-len(flat) % world_size)])
    out = torch.empty(len(flat) // world_size, dtype=flat.dtype)
    work = dist.reduce_scatter_single(out, flat, async_op=True)
    for p in params:
        p.grad = None
    work.wait()
    return out


# %% wrong: all_reduce, then a slice | forbidden call | says: only reduce_scatter may be used
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    size = -(-len(flat) // n)
    flat = pad(flat, (0, size * n - len(flat)))
    dist.all_reduce(flat)
    for p in params:
        p.grad = None
    return flat.view(n, size)[dist.get_rank()].clone() / n


# %% wrong: one call for each parameter | wrong | says: Join the gradients first
def reduce_scatter_gradients(params):
    n, shards = dist.get_world_size(), []
    for p in params:
        flat = p.grad.flatten()
        shard = flat.new_empty(-(-len(flat) // n))
        dist.reduce_scatter_single(
            shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
        )
        shards.append(shard)
        p.grad = None
    whole = torch.cat(shards)
    return whole[: -(-sum(p.numel() for p in params) // n)].clone()


# %% wrong: nothing comes back | wrong | says: prints, but returns nothing
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    print(shard)


# %% right: one process more: the list form, each part a clone, AVG
from torch.nn.functional import pad


def average(params, dtype=None):
    flat = torch.cat([p.grad.flatten() for p in params]).to(dtype or params[0].dtype)
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard


def reduce_scatter_gradients(params):
    n, rank = dist.get_world_size(), dist.get_rank()
    grads = torch.cat([p.grad.ravel() for p in params])
    size = (len(grads) + n - 1) // n
    parts = [torch.zeros(size, dtype=grads.dtype) for _ in range(n)]
    for i, part in enumerate(grads.split(size)):
        parts[i][: len(part)] = part
    out = torch.empty_like(parts[rank])
    dist.reduce_scatter(out, parts, op=dist.ReduceOp.AVG)
    for p in params:
        del p.grad
    return out


# %% wrong: through float32 and back | wrong | says: float32|hands \d+ bytes to reduce_scatter
from torch.nn.functional import pad


def average(params, dtype=None):
    flat = torch.cat([p.grad.flatten() for p in params]).to(dtype or params[0].dtype)
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard


def reduce_scatter_gradients(params):
    dtype = params[0].dtype
    return average(params, torch.float32).to(dtype)


# %% wrong: each rank's own gradients are cut | wrong | says: calls reduce_scatter 0 times
from torch.nn.functional import pad


def average(params, dtype=None):
    flat = torch.cat([p.grad.flatten() for p in params]).to(dtype or params[0].dtype)
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard


def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n, rank = dist.get_world_size(), dist.get_rank()
    size = -(-len(flat) // n)
    for p in params:
        p.grad = None
    return pad(flat, (0, size * n - len(flat)))[rank * size :][:size].clone()
