# %% the host's sum is added up over the world
# Every number is counted `per_host` times: each rank adds its host's whole sum. Between the hosts, only one
# rank of each host may contribute a chunk.
def two_level_all_reduce(rank, world_size, x, per_host):
    for h in range(world_size // per_host):
        g = dist.new_group(list(range(h * per_host, (h + 1) * per_host)))
        if rank // per_host == h:
            inside = g
    total = x.clone()
    dist.all_reduce(total, group=inside)
    dist.all_reduce(total)
    return total


# %% the last step is missing
# This rank's own chunk is the sum over all ranks, the other chunks are not. In the last step each rank of a
# host sends its chunk to the others.
def two_level_all_reduce(rank, world_size, x, per_host):
    grid = torch.arange(world_size).reshape(-1, per_host)
    for ranks in grid.tolist():
        group = dist.new_group(ranks)
        if rank in ranks:
            inside, host = group, ranks
    for ranks in grid.T.tolist():
        group = dist.new_group(ranks)
        if rank in ranks:
            between = group
    total = x.clone()
    chunks = total.tensor_split(per_host)
    for owner, chunk in zip(host, chunks, strict=True):
        dist.reduce(chunk.clone() if rank != owner else chunk, owner, group=inside)
    dist.all_reduce(chunks[rank % per_host], group=between)
    return total


# %% nothing between the hosts
# This is the sum over this rank's host only. Nothing was added between the hosts.
def two_level_all_reduce(rank, world_size, x, per_host):
    for h in range(world_size // per_host):
        g = dist.new_group(list(range(h * per_host, (h + 1) * per_host)))
        if rank // per_host == h:
            inside = g
    total = x.clone()
    dist.all_reduce(total, group=inside)
    return total


# %% only members make their group | crashed
# The ranks do not make the same groups in the same order. Every rank must call `new_group` for all groups,
# also for those that it is not in.
def two_level_all_reduce(rank, world_size, x, per_host):
    host, me = divmod(rank, per_host)
    inside = dist.new_group(list(range(host * per_host, (host + 1) * per_host)))
    between = dist.new_group(list(range(me, world_size, per_host)))
    total = x.clone()
    dist.all_reduce(total, group=inside)
    own = total.tensor_split(per_host)
    dist.all_reduce(own[me], group=between)
    for i, chunk in enumerate(own):
        dist.broadcast(chunk, host * per_host + i, group=inside)
    return total


# %% lengths that do not divide | crashed
# The length is not a multiple of `per_host`. Pad with zeros, or use `x.tensor_split(per_host)`.
def two_level_all_reduce(rank, world_size, x, per_host):
    grid = torch.arange(world_size).reshape(-1, per_host)
    for ranks in grid.tolist():
        group = dist.new_group(ranks)
        if rank in ranks:
            inside = group
    for ranks in grid.T.tolist():
        group = dist.new_group(ranks)
        if rank in ranks:
            across = group
    part = x.new_empty(len(x) // per_host)
    dist.reduce_scatter_single(part, x, group=inside)
    dist.all_reduce(part, group=across)
    out = torch.empty_like(x)
    dist.all_gather_single(out, part, group=inside)
    return out
