# %% lengths that do not divide are forgotten | crashed
# {length} elements for {n} ranks: {each} each. Add zeros at the end until there are {padded}, and drop
# them after.
def split_sum(rank, world_size, x):
    out = x.new_empty(-(-len(x) // world_size))
    dist.reduce_scatter_single(out, x)
    return out


# %% chunks of any number | crashed
# {length} elements for {n} ranks: {each} each. Add zeros at the end until there are {padded}, and drop
# them after.
def split_sum(rank, world_size, x):
    parts = list(x.chunk(world_size))
    out = torch.empty_like(parts[0])
    dist.reduce_scatter(out, parts)
    return out


# %% the zeros stay
# Added zeros are still there: each rank drops those beyond the end of `x`.
def split_sum(rank, world_size, x):
    each = -(-len(x) // world_size)
    padded = torch.cat([x, x.new_zeros(each * world_size - len(x))])
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, padded)
    return out


# %% the mean
# This is {n} times too small: is it divided by the world size once too often?
def split_sum(rank, world_size, x):
    each = -(-len(x) // world_size)
    padded = torch.cat([x, x.new_zeros(each * world_size - len(x))])
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, padded)
    out = out / world_size
    return out[: max(0, len(x) - rank * each)].to(x.dtype)


# %% the rest is cut off
# The last elements are lost: round up, not down.
def split_sum(rank, world_size, x):
    each = len(x) // world_size
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, x[: each * world_size])
    return out


# %% fair shares
# These are fair shares. Here every rank gets {each} elements while there are some, the last ones less.
def split_sum(rank, world_size, x):
    parts = [part.clone() for part in x.tensor_split(world_size)]
    out = torch.empty_like(parts[rank])
    dist.reduce_scatter(out, parts)
    return out
