# %% lengths that do not divide are forgotten | crashed
# The length is not a multiple of the number of ranks. Add zeros at the end until there are `each *
# world_size` elements, and drop them afterwards.
def split_sum(rank, world_size, x):
    out = x.new_empty(-(-len(x) // world_size))
    dist.reduce_scatter_single(out, x)
    return out


# %% chunks of any number | crashed
# The length is not a multiple of the number of ranks. Add zeros at the end until there are `each *
# world_size` elements, and drop them afterwards.
def split_sum(rank, world_size, x):
    parts = list(x.chunk(world_size))
    out = torch.empty_like(parts[0])
    dist.reduce_scatter(out, parts)
    return out


# %% the zeros stay
# The added zeros are still there. Each rank drops those beyond the end of `x`.
def split_sum(rank, world_size, x):
    each = -(-len(x) // world_size)
    padded = torch.cat([x, x.new_zeros(each * world_size - len(x))])
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, padded)
    return out


# %% the mean
# This is the sum divided by the number of ranks. Return the sum.
def split_sum(rank, world_size, x):
    each = -(-len(x) // world_size)
    padded = torch.cat([x, x.new_zeros(each * world_size - len(x))])
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, padded)
    out = out / world_size
    return out[: max(0, len(x) - rank * each)].to(x.dtype)


# %% the rest is cut off
# The last elements are missing: `len(x) // world_size` rounds down. Round up and pad with zeros.
def split_sum(rank, world_size, x):
    each = len(x) // world_size
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, x[: each * world_size])
    return out


# %% fair shares
# The elements are spread evenly, as `tensor_split` does. Here each rank gets {each} elements while there
# are enough left; the last ranks get fewer, or none.
def split_sum(rank, world_size, x):
    parts = [part.clone() for part in x.tensor_split(world_size)]
    out = torch.empty_like(parts[rank])
    dist.reduce_scatter(out, parts)
    return out


# %% floats for whole numbers
# The sum has another dtype than `x`. Make zeros and `out` in its dtype: `x.new_zeros(...)`,
# `x.new_empty(...)`.
def split_sum(rank, world_size, x):
    each = -(-len(x) // world_size)
    padded = torch.cat([x.double(), torch.zeros(each * world_size - len(x)).double()])
    out = padded.new_empty(each)
    dist.reduce_scatter_single(out, padded)
    return out[: max(0, len(x) - rank * each)]


# %% a negative end cuts from the back
# The end of the slice is negative on some ranks, and a negative end counts from the back. Use `max(0,
# ...)`.
def split_sum(rank, world_size, x):
    n = len(x)
    each = -(-n // world_size)
    padded = torch.cat([x, x.new_zeros(each * world_size - n)])
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, padded)
    return out[: min(each, n - rank * each)]


# %% zeros taken for padding
# Zeros were dropped, but a sum may be zero itself. Count the real elements from `rank` and `len(x)`.
def split_sum(rank, world_size, x):
    n = len(x)
    each = -(-n // world_size)
    padded = torch.cat([x, x.new_zeros(each * world_size - n)])
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, padded)
    return out[out != 0]


# %% rounded down, not padded | crashed
# The length is not a multiple of the number of ranks. Add zeros at the end until there are `each *
# world_size` elements, and drop them afterwards.
def split_sum(rank, world_size, x):
    out = torch.empty(len(x) // world_size, dtype=x.dtype)
    dist.reduce_scatter_single(out, x)
    return out
