# %% right: every part contiguous
def contiguous_first(rank, world_size, x, src):
    rows, columns = x.shape
    parts, out = None, torch.empty(rows, columns // world_size)
    if rank == src:
        parts = [part.contiguous() for part in x.chunk(world_size, dim=1)]
    dist.scatter(out, parts, src=src)
    return out


# %% right: rows of the transposed matrix, turned afterwards
def contiguous_first(rank, world_size, x, src):
    turned = x.T.contiguous()
    each = len(turned) // world_size
    box = torch.zeros(each, turned.shape[1])
    dist.scatter(box, list(turned.split(each)) if rank == src else None, src=src)
    return box.T


# %% right: clones of a contiguous format, in a comprehension
def contiguous_first(rank, world_size, x, src):
    each = x.size(1) // world_size
    cut = [
        x[:, r * each : (r + 1) * each].clone(memory_format=torch.contiguous_format)
        for r in range(world_size)
    ]
    out = torch.empty_like(cut[rank])
    if dist.get_rank() == src:
        dist.scatter(out, cut, src=src, async_op=True).wait()
    else:
        dist.scatter(out, src=src, async_op=True).wait()
    return out


# %% wrong: a broadcast and a slice | forbidden call | says: only scatter may be used
def contiguous_first(rank, world_size, x, src):
    x = x.contiguous()
    dist.broadcast(x, src=src)
    return x.chunk(world_size, dim=1)[rank].contiguous()


# %% wrong: the columns go out one by one | wrong | says: once is right
def contiguous_first(rank, world_size, x, src):
    each = x.shape[1] // world_size
    out = torch.empty(x.shape[0], each)
    for i in range(each):
        parts = None
        if rank == src:
            parts = [x[:, r * each + i].contiguous() for r in range(world_size)]
        box = torch.empty(x.shape[0])
        dist.scatter(box, parts, src=src)
        out[:, i] = box
    return out


# %% wrong: the list on every rank | crashed | says: Only rank `src` passes
def contiguous_first(rank, world_size, x, src):
    parts = [part.contiguous() for part in x.chunk(world_size, dim=1)]
    out = torch.empty(x.shape[0], x.shape[1] // world_size)
    dist.scatter(out, parts, src=src)
    return out
