from torch.distributed.device_mesh import init_device_mesh


def by_mesh(names, sizes, per_host, x, copies=True):
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in names), mesh_dim_names=tuple(names))
    layout = {}
    for name in names:
        group = mesh.get_group(name)
        ranks = dist.get_process_group_ranks(group)
        total = x.clone() if copies else x
        dist.all_reduce(total, group=group)
        hosts = len({r // per_host for r in ranks})
        layout[name] = (mesh.get_local_rank(name), ranks, hosts, total)
    return layout


# %% the order of the dict
# The mesh has its dimensions in the wrong order. `order` starts with the innermost, whose coordinate
# changes from one rank to the next; a mesh is written with the innermost dimension last.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    return by_mesh(list(sizes), sizes, per_host, x)


# %% the innermost dimension first
# The mesh has its dimensions in the wrong order. `order` starts with the innermost, whose coordinate
# changes from one rank to the next; a mesh is written with the innermost dimension last.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    return by_mesh(order.split("-"), sizes, per_host, x)


# %% x itself is summed, again and again
# The sums are too large. Each call needs its own group (`group=`) and its own clone of x, because
# all_reduce writes into its tensor.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    return by_mesh(order.split("-")[::-1], sizes, per_host, x, copies=False)


# %% each rank makes its own groups only | crashed
# The ranks create different groups. Every rank must call new_group for all groups of all dimensions, in the
# same order; init_device_mesh does that for you.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    names = order.split("-")[::-1]
    grid = torch.arange(world_size).reshape([sizes[n] for n in names])
    layout = {}
    for dim, name in enumerate(names):
        (ranks,) = [g for g in grid.movedim(dim, -1).reshape(-1, sizes[name]).tolist() if rank in g]
        total = x.clone()
        dist.all_reduce(total, group=dist.new_group(ranks))
        layout[name] = (ranks.index(rank), ranks, len({r // per_host for r in ranks}), total)
    return layout


# %% hosts counted by length
# The number of hosts is wrong. Rank r runs on host r // per_host: count the different hosts of the group's
# ranks.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    layout = by_mesh(order.split("-")[::-1], sizes, per_host, x)
    return {n: (c, r, -(-len(r) // per_host), t) for n, (c, r, _, t) in layout.items()}


# %% a mean in place of the sum
# These are means. Return the sums.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    layout = by_mesh(order.split("-")[::-1], sizes, per_host, x)
    return {n: (c, r, h, t / len(r)) for n, (c, r, h, t) in layout.items()}


# %% hosts counted from the first rank to the last
# The number of hosts is wrong. Rank r runs on host r // per_host: count the different hosts of the group's
# ranks.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    layout = by_mesh(order.split("-")[::-1], sizes, per_host, x)
    return {
        n: (c, r, r[-1] // per_host - r[0] // per_host + 1, t) for n, (c, r, _, t) in layout.items()
    }


# %% the global rank for a coordinate
# This is the rank's global number. The coordinate is its place in its group, counted from 0.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    layout = by_mesh(order.split("-")[::-1], sizes, per_host, x)
    return {n: (rank, r, h, t) for n, (_, r, h, t) in layout.items()}


# %% ranks counted within the group
# These are ranks within the group. Return global ranks, from 0 to world_size - 1.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    layout = by_mesh(order.split("-")[::-1], sizes, per_host, x)
    return {n: (c, list(range(len(r))), h, t) for n, (c, r, h, t) in layout.items()}


# %% what was summed before is summed on
# The sums are too large. Each call needs its own group (`group=`) and its own clone of x, because
# all_reduce writes into its tensor.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    names = order.split("-")[::-1]
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in names), mesh_dim_names=tuple(names))
    layout = {}
    for name in names:
        group = mesh.get_group(name)
        ranks = dist.get_process_group_ranks(group)
        dist.all_reduce(x, group=group)
        hosts = {r // per_host for r in ranks}
        layout[name] = (mesh.get_local_rank(name), ranks, len(hosts), x.clone())
    return layout


# %% the coordinate without the stride
# The coordinate is wrong: rank % size is right for the innermost dimension only. Others need their stride:
# rank // stride % size.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    from torch.distributed.device_mesh import init_device_mesh

    outer = tuple(reversed(order.split("-")))
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in outer), mesh_dim_names=outer)
    found = {}
    for name in outer:
        group = mesh.get_group(name)
        ranks, total = dist.get_process_group_ranks(group), x.clone()
        dist.all_reduce(total, group=group)
        found[name] = (rank % sizes[name], ranks, len({r // per_host for r in ranks}), total)
    return found


# %% nothing is summed
# These are this rank's own x: nothing was summed over the group.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    names = order.split("-")[::-1]
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in names), mesh_dim_names=tuple(names))
    layout = {}
    for name in names:
        ranks = dist.get_process_group_ranks(mesh.get_group(name))
        hosts = {r // per_host for r in ranks}
        layout[name] = (mesh.get_local_rank(name), ranks, len(hosts), x)
    return layout


# %% the order of the dict, reversed
# The mesh has its dimensions in the wrong order. `order` starts with the innermost, whose coordinate
# changes from one rank to the next; a mesh is written with the innermost dimension last.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    from torch.distributed.device_mesh import init_device_mesh

    outer = tuple(reversed(list(sizes)))
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in outer), mesh_dim_names=outer)
    found = {}
    for name in outer:
        group = mesh.get_group(name)
        ranks, total = dist.get_process_group_ranks(group), x.clone()
        dist.all_reduce(total, group=group)
        hosts = len({r // per_host for r in ranks})
        found[name] = (mesh.get_local_rank(name), ranks, hosts, total)
    return found


# %% places on a host in place of hosts
# The number of hosts is wrong. Rank r runs on host r // per_host: count the different hosts of the group's
# ranks.
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    from torch.distributed.device_mesh import init_device_mesh

    outer = tuple(reversed(order.split("-")))
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in outer), mesh_dim_names=outer)
    found = {}
    for name in outer:
        group = mesh.get_group(name)
        ranks, total = dist.get_process_group_ranks(group), x.clone()
        dist.all_reduce(total, group=group)
        hosts = len({r % per_host for r in ranks})
        found[name] = (mesh.get_local_rank(name), ranks, hosts, total)
    return found


# %% sums over all ranks
# The sums are over all ranks. Each all_reduce needs its own group (`group=`).
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    layout = by_mesh(order.split("-")[::-1], sizes, per_host, x)
    total = x.clone()
    dist.all_reduce(total)
    return {n: (c, r, h, total) for n, (c, r, h, _) in layout.items()}
