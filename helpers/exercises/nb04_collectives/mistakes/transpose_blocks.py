# %% the blocks themselves are not transposed
# The right blocks have come, but each must be transposed in itself as well.
def transpose_blocks(rank, world_size, x):
    give = [block.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take, dim=1)


# %% stacked below each other
# Each block is right. They belong side by side: `torch.cat(..., dim=1)`.
def transpose_blocks(rank, world_size, x):
    give = [block.T.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take)


# %% reshape taken for a transpose
# `reshape` and `view` do not transpose: they keep the elements in their order.
def transpose_blocks(rank, world_size, x):
    give = [block.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat([t.reshape(t.shape[1], t.shape[0]) for t in take], dim=1)


# %% a view to all_to_all_single | crashed
# A block of columns and a transposed block are views. `.contiguous()` makes a copy whose elements lie
# side by side.
def transpose_blocks(rank, world_size, x):
    out = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype)
    dist.all_to_all_single(out, x.T)
    return torch.cat(out.chunk(world_size), dim=1)


# %% rows are cut in place of columns | crashed
# One block goes to each of the {n} ranks, one comes from each: cut `x` by columns, `x.chunk(world_size,
# dim=1)`.
def transpose_blocks(rank, world_size, x):
    give = [block.T.contiguous() for block in x.chunk(world_size, dim=0)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take, dim=1)


# %% the order of the ranks reversed
# The right elements, in wrong places: is a tensor that you hand in, or one that receives, not contiguous?
# `torch.empty_like` of a transposed block is one; make it by `torch.empty(rows, columns, dtype=x.dtype)`.
def transpose_blocks(rank, world_size, x):
    give = [block.T.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take[::-1], dim=1)
