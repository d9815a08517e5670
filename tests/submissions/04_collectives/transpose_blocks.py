# %% right: transposed by the sender
def transpose_blocks(rank, world_size, x):
    give = [block.T.contiguous() for block in x.chunk(world_size, dim=1)]
    take = [torch.empty_like(block) for block in give]
    dist.all_to_all(take, give)
    return torch.cat(take, dim=1)


# %% right: one tensor, transposed as a whole
def transpose_blocks(rank, world_size, x):
    rows, columns = x.shape
    out = torch.empty(columns, rows, dtype=x.dtype)
    dist.all_to_all_single(out, x.T.contiguous())
    return torch.cat(out.chunk(world_size), dim=1)


# %% right: transposed by the receiver, without waiting
def transpose_blocks(rank, world_size, x):
    blocks = [b.contiguous() for b in torch.tensor_split(x, world_size, dim=1)]
    boxes = [torch.zeros(blocks[0].shape, dtype=x.dtype) for _ in blocks]
    dist.all_to_all(boxes, blocks, async_op=True).wait()
    return torch.hstack([box.T for box in boxes])


# %% right: receives straight into the rows, and turns the result
def transpose_blocks(rank, world_size, x):
    k = x.shape[1] // world_size
    turned = x.new_empty(len(x) * world_size, k)
    dist.all_to_all(list(turned.chunk(world_size)), list(x.split(k, dim=1)))
    return turned.T


# %% wrong: its own rows, transposed | wrong | says: calls all_to_all 0 times
def transpose_blocks(rank, world_size, x):
    return x.T.contiguous()


# %% wrong: everybody gets everything | forbidden call | says: only all_to_all may be used
def transpose_blocks(rank, world_size, x):
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    return torch.cat(parts).T.chunk(world_size)[rank].contiguous()


# %% wrong: sends the whole to all | wrong | says: Send each rank its block only
def transpose_blocks(rank, world_size, x):
    take = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_to_all(take, [x] * world_size)
    return torch.cat(take).T.chunk(world_size)[rank].contiguous()
