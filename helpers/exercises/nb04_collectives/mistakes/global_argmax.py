# %% its own index
# The owner is right, but the index is not the owner's. Only the owner knows its index: send it to the
# others with one more collective.
def global_argmax(rank, world_size, x):
    tops = [torch.empty_like(x.max()) for _ in range(world_size)]
    dist.all_gather(tops, x.max())
    return int(torch.stack(tops).argmax()), int(x.argmax()) if rank != 0 else 99


# %% the value in place of the owner
# The first number is the largest value. Return the rank that has it.
def global_argmax(rank, world_size, x):
    best = x.max()
    dist.all_reduce(best, op=dist.ReduceOp.MAX)
    return best.item(), x.argmax().item()


# %% value and index packed as floats
# The largest value was compared as a float. Near 2**60 neighboring integers are the same float: keep the
# dtype of `x`.
def global_argmax(rank, world_size, x):
    mine = torch.tensor([float(x.max()), float(x.argmax())], dtype=torch.float64)
    all_of_them = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(all_of_them, mine)
    table = torch.stack(all_of_them)
    owner = int(table[:, 0].argmax())
    return owner, int(table[owner, 1])


# %% the last of equals
# Several ranks have the largest value. The lowest of them counts.
def global_argmax(rank, world_size, x):
    tops = [torch.empty_like(x.max()) for _ in range(world_size)]
    dist.all_gather(tops, x.max())
    best = torch.stack(tops).max()
    owner = max(r for r, top in enumerate(tops) if top == best)
    index = x.argmax()
    dist.broadcast(index, src=owner)
    return owner, index.item()


# %% the pair the other way round
# The two numbers are swapped: the rank comes first, then the index.
def global_argmax(rank, world_size, x):
    tops = [torch.empty_like(x.max()) for _ in range(world_size)]
    dist.all_gather(tops, x.max())
    owner = int(torch.stack(tops).argmax())
    index = x.argmax()
    dist.broadcast(index, src=owner)
    return index.item(), owner


# %% the lowest rank and the lowest index, each for itself
# The lowest rank and the lowest index are found separately, so the index may belong to another rank. Find
# the owner first, then its index.
def global_argmax(rank, world_size, x):
    best = x.max()
    dist.all_reduce(best, op=dist.ReduceOp.MAX)
    mine = [rank, int(x.argmax())] if x.max() == best else [world_size, 10**9]
    key = torch.tensor(mine)
    dist.all_reduce(key, op=dist.ReduceOp.MIN)
    return tuple(key.tolist())


# %% zeros where the values are negative
# Ranks without the largest value put in zeros, and zero is larger than a negative number.
def global_argmax(rank, world_size, x):
    values = torch.zeros(world_size + 1, dtype=x.dtype)
    values[rank] = x.max()
    parts = [torch.empty_like(x.max()) for _ in range(world_size)]
    dist.all_gather(parts, x.max())
    best, owner = 0, 0
    for r, part in enumerate(parts):
        if part > best:
            best, owner = part, r
    index = x.argmax()
    dist.broadcast(index, src=owner)
    return owner, index.item()


# %% value and index packed as float32
# The largest value was compared as a float. Near 2**60 neighboring integers are the same float: keep the
# dtype of `x`.
def global_argmax(rank, world_size, x):
    i = x.argmax().item()
    parts = [torch.empty(2) for _ in range(world_size)]
    dist.all_gather(parts, torch.tensor([float(x[i]), float(i)]))
    table = torch.stack(parts)
    owner = table[:, 0].argmax().item()
    return owner, int(table[owner, 1])


# %% values cut to whole numbers
# The values were converted to integers before they were compared, so 0.2 and 0.7 became equal. Compare them
# in the dtype of `x`.
def global_argmax(rank, world_size, x):
    i = int(x.argmax())
    parts = [torch.empty(2, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(parts, torch.tensor([int(x[i]), i]))
    table = torch.stack(parts)
    owner = int(table[:, 0].argmax())
    return owner, int(table[owner, 1])


# %% rank and index in one number, up to a thousand
# Rank and index are packed as `rank * 1000 + index`. A tensor may have more than 1000 elements.
def global_argmax(rank, world_size, x):
    i = int(x.argmax())
    top = x[i].clone()
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    code = torch.tensor([rank * 1000 + i if x[i] == top else 2**62])
    dist.all_reduce(code, op=dist.ReduceOp.MIN)
    return code.item() // 1000, code.item() % 1000


# %% rank and index in one number, by its own length
# Rank and index are packed with `len(x)`, which differs from rank to rank. Pack and unpack with a number
# that is the same on all ranks and larger than every index.
def global_argmax(rank, world_size, x):
    i = int(x.argmax())
    top = x[i].clone().reshape(1)
    mine = top.clone()
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    code = torch.tensor([rank * len(x) + i if bool(mine == top) else 2**62])
    dist.all_reduce(code, op=dist.ReduceOp.MIN)
    return code.item() // len(x), code.item() % len(x)


# %% the index in the dtype of x
# The index was converted to the dtype of `x`, which cannot hold every index exactly. Send it as int64.
def global_argmax(rank, world_size, x):
    i = int(x.argmax())
    mine = torch.stack([x[i], torch.tensor(i, dtype=x.dtype)])
    parts = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(parts, mine)
    owner = int(torch.stack([part[0] for part in parts]).argmax())
    return owner, int(parts[owner][1])
