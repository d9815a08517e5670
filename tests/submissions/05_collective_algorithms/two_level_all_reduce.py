# %% right: reduce_scatter and all_gather inside, of a padded tensor
def two_level_all_reduce(rank, world_size, x, per_host):
    host, me = divmod(rank, per_host)
    for h in range(world_size // per_host):
        g = dist.new_group(list(range(h * per_host, (h + 1) * per_host)))
        if h == host:
            inside = g
    for i in range(per_host):
        g = dist.new_group(list(range(i, world_size, per_host)))
        if i == me:
            between = g
    length = -(-x.numel() // per_host)
    padded = torch.zeros(length * per_host, dtype=x.dtype)
    padded[: x.numel()] = x
    chunk = torch.empty(length, dtype=x.dtype)
    dist.reduce_scatter_tensor(chunk, padded, group=inside)
    dist.all_reduce(chunk, group=between)
    dist.all_gather_into_tensor(padded, chunk, group=inside)
    return padded[: x.numel()].clone()


# %% right: a sum of the whole inside, messages around a ring of hosts
def two_level_all_reduce(rank, world_size, x, per_host):
    hosts, (host, me) = world_size // per_host, divmod(rank, per_host)
    groups = [dist.new_group(list(range(h * per_host, (h + 1) * per_host))) for h in range(hosts)]
    total = x.clone()
    dist.all_reduce(total, group=groups[host])
    parts = list(total.tensor_split(per_host)[me].tensor_split(hosts))
    after, before = (rank + per_host) % world_size, (rank - per_host) % world_size
    for step in range(2 * (hosts - 1)):
        add = step < hosts - 1
        out = (host - step) % hosts if add else (host + hosts - step) % hosts
        into = (out - 1) % hosts
        box = torch.empty_like(parts[into])
        work = dist.isend(parts[out], after)
        dist.recv(box, before)
        work.wait()
        parts[into].copy_(parts[into] + box if add else box)
    for i, chunk in enumerate(total.tensor_split(per_host)):
        dist.broadcast(chunk, host * per_host + i, group=groups[host])
    return total


# %% right: init_device_mesh makes the groups
from torch.distributed.device_mesh import init_device_mesh


def two_level_all_reduce(rank, world_size, x, per_host):
    mesh = init_device_mesh(
        "cpu", (world_size // per_host, per_host), mesh_dim_names=("host", "local")
    )
    inside, between = mesh["local"].get_group(), mesh["host"].get_group()
    y = x.clone()
    chunks = y.tensor_split(per_host)
    for i in range(per_host):
        dist.reduce(chunks[i], group_dst=i, group=inside)
    dist.all_reduce(chunks[mesh["local"].get_local_rank()], group=between)
    for i in range(per_host):
        dist.broadcast(chunks[i], group_src=i, group=inside)
    return y


# %% wrong: only the first of each host talks, for all | wrong | says: rank 0 sends [\d,]+ bytes to other hosts.*are enough: a ring over one of `per_host` chunks
def two_level_all_reduce(rank, world_size, x, per_host):
    host = rank // per_host
    for h in range(world_size // per_host):
        g = dist.new_group(list(range(h * per_host, (h + 1) * per_host)))
        if h == host:
            inside = g
    leaders = dist.new_group(list(range(0, world_size, per_host)))
    total = x.clone()
    dist.reduce(total, host * per_host, group=inside)
    if rank % per_host == 0:
        dist.all_reduce(total, group=leaders)
    dist.broadcast(total, host * per_host, group=inside)
    return total


# %% wrong: all_reduce in the world | wrong | says: in a group of ranks [\d, ]+: of several hosts, and of some of them more than one
def two_level_all_reduce(rank, world_size, x, per_host):
    total = x.clone()
    dist.all_reduce(total)
    return total


# %% wrong: every rank brings the whole sum of its host | wrong | says: rank 0 sends [\d,]+ bytes to other hosts
def two_level_all_reduce(rank, world_size, x, per_host):
    for h in range(world_size // per_host):
        ranks = list(range(h * per_host, (h + 1) * per_host))
        g = dist.new_group(ranks)
        inside = g if rank in ranks else (inside if h else None)
    for i in range(per_host):
        ranks = list(range(i, world_size, per_host))
        g = dist.new_group(ranks)
        between = g if rank in ranks else (between if i else None)
    total = x.clone()
    dist.all_reduce(total, group=inside)
    dist.all_reduce(total, group=between)
    return total


# %% wrong: hosts taken for every per_host-th rank | wrong | says: rank 0 sends [\d,]+ bytes to other hosts|in a group of ranks
def two_level_all_reduce(rank, world_size, x, per_host):
    hosts = world_size // per_host
    for h in range(hosts):
        ranks = list(range(h, world_size, hosts))
        g = dist.new_group(ranks)
        if rank in ranks:
            inside, host = g, ranks
    for i in range(per_host):
        ranks = list(range(i * hosts, (i + 1) * hosts))
        g = dist.new_group(ranks)
        if rank in ranks:
            between, mine = g, i
    total = x.clone()
    chunks = total.tensor_split(per_host)
    for owner, chunk in zip(host, chunks, strict=True):
        dist.reduce(chunk, owner, group=inside)
    dist.all_reduce(chunks[mine], group=between)
    for owner, chunk in zip(host, chunks, strict=True):
        dist.broadcast(chunk, owner, group=inside)
    return total


# %% wrong: x itself is changed | wrong | says: has changed `x`
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
    chunks = x.tensor_split(per_host)
    for owner, chunk in zip(host, chunks, strict=True):
        dist.reduce(chunk, owner, group=inside)
    dist.all_reduce(chunks[rank % per_host], group=between)
    for owner, chunk in zip(host, chunks, strict=True):
        dist.broadcast(chunk, owner, group=inside)
    return x


# %% wrong: a chunk is reduced to one host and broadcast from it | wrong | says: bytes to other hosts, with broadcast
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
        dist.reduce(chunk, owner, group=inside)
    dist.reduce(chunks[rank % per_host], rank % per_host, group=between)
    dist.broadcast(chunks[rank % per_host], rank % per_host, group=between)
    for owner, chunk in zip(host, chunks, strict=True):
        dist.broadcast(chunk, owner, group=inside)
    return total
