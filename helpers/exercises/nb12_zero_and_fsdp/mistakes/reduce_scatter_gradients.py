from torch.nn.functional import pad


# %% the sum
# This is the sum over the ranks: divide it by {n}, or ask for ReduceOp.AVG.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(shard, pad(flat, (0, len(shard) * n - len(flat))))
    for p in params:
        p.grad = None
    return shard


# %% divided twice
# This is divided by the world size twice: ReduceOp.AVG divides already.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard / n


# %% the gradients stay
# Set `p.grad = None` for every parameter: its storage is free then.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    return shard


# %% the shard is written into the flat gradients
# A slice keeps the whole tensor alive. Let reduce_scatter write into a tensor of the shard's length, or
# `clone()` the slice.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n, rank = dist.get_world_size(), dist.get_rank()
    size = -(-len(flat) // n)
    flat = pad(flat, (0, size * n - len(flat)))
    shard = flat[rank * size : (rank + 1) * size]
    dist.reduce_scatter(shard, [c.clone() for c in flat.split(size)], op=dist.ReduceOp.AVG)
    for p in params:
        p.grad = None
    return shard


# %% no padding | crashed
# Shards must have one length on all ranks. Round the share up, `size = -(-n // world_size)`, and pad the
# last one with zeros: `torch.nn.functional.pad(flat, (0, size * world_size - n))`.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    shard = flat.new_empty(len(flat) // dist.get_world_size())
    dist.reduce_scatter_single(shard, flat, op=dist.ReduceOp.AVG)
    for p in params:
        p.grad = None
    return shard


# %% the last shard loses its padding
# {own} elements on every rank: round up, and let zeros fill the last shards.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n, rank = dist.get_world_size(), dist.get_rank()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard[: len(flat) - rank * len(shard)].clone()


# %% float32
# These are the numbers that float32 gives: keep the dtype of what you are given, all the way.
def reduce_scatter_gradients(params):
    n = dist.get_world_size()
    total = sum(p.numel() for p in params)
    size = -(-total // n)
    flat = torch.zeros(size * n)
    flat[:total] = torch.cat([p.grad.flatten() for p in params])
    shard = torch.empty(size)
    dist.reduce_scatter_single(shard, flat, op=dist.ReduceOp.AVG)
    for p in params:
        p.grad = None
    return shard


# %% the list form into a float32 shard | crashed
# Two dtypes meet. The weights need not be float32, and `torch.empty(n)` and `torch.zeros(n)` are:
# `new_empty(n)` and `new_zeros(n)` of a tensor take its dtype over.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = torch.empty(-(-len(flat) // n))
    padded = pad(flat, (0, len(shard) * n - len(flat)))
    dist.reduce_scatter(shard, list(padded.split(len(shard))), op=dist.ReduceOp.AVG)
    for p in params:
        p.grad = None
    return shard


# %% a float32 shard | crashed
# Two dtypes meet. The weights need not be float32, and `torch.empty(n)` and `torch.zeros(n)` are:
# `new_empty(n)` and `new_zeros(n)` of a tensor take its dtype over.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = torch.empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard


# %% rank r takes every n-th element
# Flatten and join the gradients in the order of `params`, pad at the end, and let rank r take the r-th
# part of the mean.
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
    n = dist.get_world_size()
    size = -(-len(flat) // n)
    flat = pad(flat, (0, size * n - len(flat))).view(size, n).T.contiguous()
    shard = flat.new_empty(size)
    dist.reduce_scatter_single(shard, flat.view(-1), op=dist.ReduceOp.AVG)
    for p in params:
        p.grad = None
    return shard


# %% the gradients stay in a list outside
# What was whole must not outlive the call: keep no attribute, no list and no other copy of it.
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


OLD = []


def reduce_scatter_gradients(params):
    OLD[:] = [p.grad for p in params]
    return average(params)


# %% the gradients stay as an array on the function
# What was whole must not outlive the call: keep no attribute, no list and no other copy of it.
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
    reduce_scatter_gradients.last = flat.float().numpy().copy()
    return average(params)


# %% steps the weights at once
# The weights have changed: gradients alone are scattered here.
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
    with torch.no_grad():
        for p in params:
            p -= 0.1 * p.grad
    return average(params)
