# %% its own index
# The owner is right, the index is not. Only the owner knows it: how do the others learn it?
def global_argmax(rank, world_size, x):
    tops = [torch.empty_like(x.max()) for _ in range(world_size)]
    dist.all_gather(tops, x.max())
    return int(torch.stack(tops).argmax()), int(x.argmax()) if rank != 0 else 99


# %% the value in place of the owner
# The first number is the largest value itself; the rank that has it is wanted.
def global_argmax(rank, world_size, x):
    best = x.max()
    dist.all_reduce(best, op=dist.ReduceOp.MAX)
    return best.item(), x.argmax().item()


# %% value and index packed as floats
# Near 2**60 neighbouring whole numbers become equal as float: keep the dtype of `x`.
def global_argmax(rank, world_size, x):
    mine = torch.tensor([float(x.max()), float(x.argmax())], dtype=torch.float64)
    all_of_them = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(all_of_them, mine)
    table = torch.stack(all_of_them)
    owner = int(table[:, 0].argmax())
    return owner, int(table[owner, 1])


# %% the last of equals
# Several ranks have the largest value: the lowest of them counts.
def global_argmax(rank, world_size, x):
    tops = [torch.empty_like(x.max()) for _ in range(world_size)]
    dist.all_gather(tops, x.max())
    best = torch.stack(tops).max()
    owner = max(r for r, top in enumerate(tops) if top == best)
    index = x.argmax()
    dist.broadcast(index, src=owner)
    return owner, index.item()


# %% the pair the other way round
# These are the right two numbers in the other order: first the rank.
def global_argmax(rank, world_size, x):
    tops = [torch.empty_like(x.max()) for _ in range(world_size)]
    dist.all_gather(tops, x.max())
    owner = int(torch.stack(tops).argmax())
    index = x.argmax()
    dist.broadcast(index, src=owner)
    return index.item(), owner


# %% the lowest rank and the lowest index, each for itself
# The owner is right, the index is not. Only the owner knows it: how do the others learn it?
def global_argmax(rank, world_size, x):
    best = x.max()
    dist.all_reduce(best, op=dist.ReduceOp.MAX)
    mine = [rank, int(x.argmax())] if x.max() == best else [world_size, 10**9]
    key = torch.tensor(mine)
    dist.all_reduce(key, op=dist.ReduceOp.MIN)
    return tuple(key.tolist())
