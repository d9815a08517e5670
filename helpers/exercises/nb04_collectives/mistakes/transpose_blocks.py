# %% the blocks themselves are not transposed
# The right blocks came, but each block has to be transposed as well.
def transpose_blocks(rank, world_size, x):
    give = [block.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take, dim=1)


# %% stacked below each other
# Each block is right, but they are stacked below each other. Place them side by side: `torch.cat(...,
# dim=1)`.
def transpose_blocks(rank, world_size, x):
    give = [block.T.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take)


# %% reshape taken for a transpose
# `reshape` and `view` keep the elements in their order. Transpose with `.T`.
def transpose_blocks(rank, world_size, x):
    give = [block.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat([t.reshape(t.shape[1], t.shape[0]) for t in take], dim=1)


# %% a view to all_to_all_single | crashed
# `x.T` is a view whose elements are not consecutive in memory. `.contiguous()` makes a copy.
def transpose_blocks(rank, world_size, x):
    out = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype)
    dist.all_to_all_single(out, x.T)
    return torch.cat(out.chunk(world_size), dim=1)


# %% rows are cut in place of columns | crashed
# The list does not have one block for each of the {n} ranks. Cut `x` into `world_size` blocks of columns:
# `x.chunk(world_size, dim=1)`.
def transpose_blocks(rank, world_size, x):
    give = [block.T.contiguous() for block in x.chunk(world_size, dim=0)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take, dim=1)


# %% the order of the ranks reversed
# The blocks are placed in reverse order. The block from rank 0 comes first.
def transpose_blocks(rank, world_size, x):
    give = [block.T.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take[::-1], dim=1)


# %% blocks of world_size columns | crashed
# The list does not have one block for each of the {n} ranks. Cut `x` into `world_size` blocks of columns:
# `x.chunk(world_size, dim=1)`.
def transpose_blocks(rank, world_size, x):
    give = [block.T.contiguous() for block in x.split(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take, dim=1)
