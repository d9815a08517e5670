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


# %% right: by a DeviceMesh
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    names = order.split("-")[::-1]
    shape = tuple(sizes[name] for name in names)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=tuple(names))
    layout = {}
    for name in names:
        group = mesh.get_group(name)
        ranks = dist.get_process_group_ranks(group)
        total = x.clone()
        dist.all_reduce(total, group=group)
        hosts = len({r // per_host for r in ranks})
        layout[name] = (mesh.get_local_rank(name), ranks, hosts, total)
    return layout


# %% right: groups by hand, from a grid of ranks
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    names = list(reversed(order.split("-")))
    grid = torch.arange(world_size).reshape([sizes[n] for n in names])
    layout = {}
    for dim, name in enumerate(names):
        for line in grid.movedim(dim, -1).reshape(-1, sizes[name]).tolist():
            group = dist.new_group(line)
            if rank in line:
                mine, ranks = group, line
        total = torch.clone(x)
        if len(ranks) > 1:
            dist.all_reduce(total, group=mine)
        layout[name] = [ranks.index(rank), ranks, len(set(r // per_host for r in ranks)), total]
    return layout


# %% right: slices of the mesh, started first and awaited later
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    names = tuple(order.split("-"))[::-1]
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in names), mesh_dim_names=names)
    totals = {n: x.clone() for n in names}
    works = [dist.all_reduce(totals[n], group=mesh[n].get_group(), async_op=True) for n in names]
    for work in works:
        work.wait()
    layout = {}
    for n in reversed(names):
        ranks = mesh[n].mesh.tolist()
        hosts = {r // per_host for r in ranks}
        layout[n] = (mesh[n].get_local_rank(), ranks, len(hosts), totals[n])
    return layout


# %% wrong: a gather in place of the sums | forbidden call | says: only all_reduce may be used
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    names = order.split("-")[::-1]
    grid = torch.arange(world_size).reshape([sizes[n] for n in names])
    everybody = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(everybody, x)
    layout = {}
    for dim, name in enumerate(names):
        (ranks,) = [g for g in grid.movedim(dim, -1).reshape(-1, sizes[name]).tolist() if rank in g]
        total = torch.stack([everybody[r] for r in ranks]).sum(0)
        layout[name] = (ranks.index(rank), ranks, len({r // per_host for r in ranks}), total)
    return layout


# %% wrong: printed, not returned | wrong | says: must come back by `return`
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    print(by_mesh(order.split("-")[::-1], sizes, per_host, x))


# %% wrong: started, never awaited | wrong | says: never calls wait\(\)
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    names = order.split("-")[::-1]
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in names), mesh_dim_names=tuple(names))
    layout = {}
    for name in names:
        group, total = mesh.get_group(name), x.clone()
        ranks = dist.get_process_group_ranks(group)
        dist.all_reduce(total, group=group, async_op=True)
        hosts = {r // per_host for r in ranks}
        layout[name] = (mesh.get_local_rank(name), ranks, len(hosts), total)
    return layout


# %% wrong: lists in place of a dict | wrong | says: not a dict
def mesh_layout(rank, world_size, sizes, order, per_host, x):
    return [*by_mesh(order.split("-")[::-1], sizes, per_host, x).values()]
