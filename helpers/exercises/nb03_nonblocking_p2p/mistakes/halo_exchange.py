# %% the halos are used before wait
# The halos are used before their `wait()` returned, so they hold no data yet. Wait for all transfers, then
# compute.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        if rank > 0:
            works += [dist.isend(block[:1], rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(block[-1:], rank + 1), dist.irecv(east, rank + 1)]
        padded = torch.cat([west, block, east])
        for work in works:
            work.wait()
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% a sweep that reads new values (Gauss-Seidel)
# A cell uses its left neighbor's new value. A Jacobi sweep computes every cell from old values.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        if rank > 0:
            works += [dist.isend(block[:1], rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(block[-1:], rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        padded = torch.cat([west, block, east])
        for i in range(1, len(padded) - 1):
            padded[i] = (padded[i - 1] + padded[i + 1]) / 2
        block = padded[1:-1]
    return block


# %% the halos of the two neighbors are the wrong way round
# The two halos are swapped between the neighbors: the cell from rank - 1 belongs before the block, the one
# from rank + 1 after it.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        if rank > 0:
            works += [dist.isend(block[:1], rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(block[-1:], rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        inner = 0 < rank < world_size - 1
        padded = torch.cat([east, block, west] if inner else [west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% the two ends are kept in float32
# `left` was rounded to float32. Make the halo in the dtype of the block: `block.new_tensor([left])`.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        if rank == 0:
            west = torch.tensor([left]).to(block.dtype)
        works = []
        if rank > 0:
            works += [dist.isend(block[:1], rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(block[-1:], rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% both halos the wrong way round, on every rank
# The two halos are swapped: the one from the left, or `left`, belongs before the block, the other after it.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        if rank > 0:
            works += [dist.isend(block[:1], rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(block[-1:], rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        padded = torch.cat([east, block, west])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% every rank for itself
# Every rank computes as if its block were the whole rod. Inside the rod the halos are the neighbors' edge
# cells.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        padded = torch.cat([block.new_tensor([left]), block, block.new_tensor([right])])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% exchanged once, before the sweeps
# The halos are exchanged only once. Every sweep changes the edge cells: exchange them before each sweep.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    west, east = block.new_tensor([left]), block.new_tensor([right])
    works = []
    if rank > 0:
        works += [dist.isend(block[:1], rank - 1), dist.irecv(west, rank - 1)]
    if rank < world_size - 1:
        works += [dist.isend(block[-1:], rank + 1), dist.irecv(east, rank + 1)]
    for work in works:
        work.wait()
    for _ in range(sweeps):
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% the rod is closed to a ring
# The two ends of the rod are treated as neighbors. Rank 0 uses `left` and the last rank uses `right` in
# place of a halo.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = torch.empty_like(block[:1]), torch.empty_like(block[:1])
        before, after = (rank - 1) % world_size, (rank + 1) % world_size
        works = [
            dist.isend(block[-1:], after),
            dist.irecv(west, before),
            dist.isend(block[:1], before, tag=1),
            dist.irecv(east, after, tag=1),
        ]
        for work in works:
            work.wait()
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% one sweep too few
# One sweep is missing: loop over `range(sweeps)`.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(1, sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        if rank > 0:
            works += [dist.isend(block[:1], rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(block[-1:], rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% sweeps at least once
# A sweep is done although `sweeps` is 0. With 0 sweeps, return the block as it is.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    while True:
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        if rank > 0:
            works += [dist.isend(block[:1], rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(block[-1:], rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
        sweeps -= 1
        if sweeps <= 0:
            return block


# %% first and last cell swapped
# Each neighbor gets the wrong end of the block: the first cell goes to rank - 1, the last to rank + 1.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        first, last = block[:1].clone(), block[-1:].clone()
        if rank > 0:
            works += [dist.isend(last, rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(first, rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% no block of one cell | crashed
# A block may have a single cell, which has a halo on both sides. `torch.cat([west, block, east])` treats
# all cells alike.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    block = block.clone()
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        first, last = block[:1].clone(), block[-1:].clone()
        if rank > 0:
            works += [dist.isend(first, rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(last, rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        old = block.clone()
        block[1:-1] = (old[:-2] + old[2:]) / 2
        block[0] = (west[0] + old[1]) / 2
        block[-1] = (old[-2] + east[0]) / 2
    return block
