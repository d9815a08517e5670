# %% wrong: the edges travel as float32 | wrong | says: one cell of the rod has 8


# %% wrong: one sweep too few | wrong | says: one sweep earlier


# %% wrong: the two ends are kept in float32 | wrong | says: expected
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


# %% wrong: both halos the wrong way round, on every rank | wrong | says: wrong way round
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


# %% wrong: sweeps at least once | wrong | says: 0 sweeps
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


# %% wrong: a send that is issued for nobody, and dropped | wrong | says: never waits for its isend
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        works = []
        if rank > 0:
            dist.isend(block[:1], rank - 1)
            works.append(dist.irecv(west, rank - 1))
        if rank < world_size - 1:
            dist.isend(block[-1:], rank + 1)
            works.append(dist.irecv(east, rank + 1))
        for work in works:
            work.wait()
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block
