# %% the host's sum is added up over the world
# Every number is counted `per_host` times: what is added between the hosts is each host's sum already,
# and only one rank of a host may bring it.
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
# This rank's own chunk is the sum of all, the other chunks are not: in the last step each rank of a host
# gives its chunk to the others.
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
# This is the sum of this rank's host: nothing has been added between the hosts.
def two_level_all_reduce(rank, world_size, x, per_host):
    for h in range(world_size // per_host):
        g = dist.new_group(list(range(h * per_host, (h + 1) * per_host)))
        if rank // per_host == h:
            inside = g
    total = x.clone()
    dist.all_reduce(total, group=inside)
    return total


# %% only members make their group | crashed
# All ranks make all groups, in the same order, also those that they are not in.
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
