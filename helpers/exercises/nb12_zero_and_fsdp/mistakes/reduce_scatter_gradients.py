from torch.nn.functional import pad


# %% the sum
# This is the sum over the ranks: divide it by {n}, or use ReduceOp.AVG.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(shard, pad(flat, (0, len(shard) * n - len(flat))))
    for p in params:
        p.grad = None
    return shard


# %% divided twice
# The sum is divided by the world size twice. (ReduceOp.AVG already divides.)
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
# Set `p.grad = None` for every parameter, which frees its storage.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    return shard


# %% the shard is written into the flat gradients
# A slice keeps the whole tensor allocated. Let reduce_scatter write into a tensor of the shard's length, or
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
# Tensors of different lengths meet in one call. Shards must be equally long on all ranks: round up, `size =
# -(-n // world_size)`, and pad with zeros, `torch.nn.functional.pad(flat, (0, size * world_size - n))`. Do
# not reduce values that belong to this rank's samples alone, such as the gradient of `x`.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    shard = flat.new_empty(len(flat) // dist.get_world_size())
    dist.reduce_scatter_single(shard, flat, op=dist.ReduceOp.AVG)
    for p in params:
        p.grad = None
    return shard


# %% the last shard loses its padding
# A shard has {own} elements on every rank: keep the zeros that fill the last shards.
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
# The shard has float32's dtype or precision: keep the gradients' dtype.
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
# Tensors of two dtypes meet. The weights need not be float32, but `torch.empty(n)` and `torch.zeros(n)`
# are: `new_empty(n)` and `new_zeros(n)` of a tensor keep its dtype.
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
# Tensors of two dtypes meet. The weights need not be float32, but `torch.empty(n)` and `torch.zeros(n)`
# are: `new_empty(n)` and `new_zeros(n)` of a tensor keep its dtype.
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
# This rank has every {n}-th element of the flat gradients: rank r's shard is the r-th of {n} consecutive
# parts.
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
# A copy of all gradients is still retained after the call, in an attribute, a list or another form.
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
# A copy of all gradients is still retained after the call, in an attribute, a list or another form.
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
# The weights have changed: only reduce and scatter the gradients.
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


# %% one dimension too many
# The values are right, but the shard must be one-dimensional.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard[None]


# %% padded at the front
# The zeros are in front of the gradients: pad at the end, `pad(flat, (0, missing))`.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (len(shard) * n - len(flat), 0)), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard


# %% the largest gradients first
# The gradients are joined in another order than `params`: the largest come first.
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in sorted(params, key=lambda p: -p.numel())])
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(
        shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG
    )
    for p in params:
        p.grad = None
    return shard
