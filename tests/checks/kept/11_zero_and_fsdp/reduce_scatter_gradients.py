from torch.nn.functional import pad


def average(params, dtype=None):
    flat = torch.cat([p.grad.flatten() for p in params]).to(dtype or params[0].dtype)
    n = dist.get_world_size()
    shard = flat.new_empty(-(-len(flat) // n))
    dist.reduce_scatter_single(shard, pad(flat, (0, len(shard) * n - len(flat))), op=dist.ReduceOp.AVG)
    for p in params:
        p.grad = None
    return shard


# %% wrong: the gradients stay | wrong | says: its storage is free then


# %% wrong: nothing comes back | wrong | says: prints, but returns nothing


# %% wrong: float32 | wrong | says: the numbers that float32 gives


# %% right: one process more: the list form, each part a clone, AVG
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


# %% wrong: through float32 and back | wrong | says: the numbers that float32 gives
def reduce_scatter_gradients(params):
    dtype = params[0].dtype
    return average(params, torch.float32).to(dtype)


# %% wrong: each rank's own gradients are cut | wrong | says: calls reduce_scatter 0 times
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    n, rank = dist.get_world_size(), dist.get_rank()
    size = -(-len(flat) // n)
    for p in params:
        p.grad = None
    return pad(flat, (0, size * n - len(flat)))[rank * size :][:size].clone()


# %% wrong: rank r takes every n-th element | wrong | says: let rank r take the r-th part
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


# %% wrong: the gradients stay in a list outside | wrong | says: What was whole must not outlive the call
OLD = []


def reduce_scatter_gradients(params):
    OLD[:] = [p.grad for p in params]
    return average(params)


# %% wrong: the gradients stay as an array on the function | wrong | says: of numbers in arrays, lists or bytes
def reduce_scatter_gradients(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    reduce_scatter_gradients.last = flat.float().numpy().copy()
    return average(params)


# %% wrong: steps the weights at once | wrong | says: gradients alone are scattered
def reduce_scatter_gradients(params):
    with torch.no_grad():
        for p in params:
            p -= 0.1 * p.grad
    return average(params)
