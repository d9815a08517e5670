# %% the halos are used before wait
# This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous
# call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic
# made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it.
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


# %% the edges are overwritten before their sends are waited for | crashed
# Between issue and wait() a tensor belongs to its transfer: nothing may write to one that is sent, no
# irecv either, nor to one that receives. Receive into a tensor of its own, such as torch.empty_like(x),
# and add up after the wait.
def halo_exchange(rank, world_size, block, left, right, sweeps):
    block = block.clone()
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        sends, works = [], []
        if rank > 0:
            sends.append(dist.isend(block[:1], rank - 1))
            works.append(dist.irecv(west, rank - 1))
        if rank < world_size - 1:
            sends.append(dist.isend(block[-1:], rank + 1))
            works.append(dist.irecv(east, rank + 1))
        for work in works:
            work.wait()
        padded = torch.cat([west, block, east])
        block[:] = (padded[:-2] + padded[2:]) / 2
        for work in sends:
            work.wait()
    return block


# %% a sweep that reads new values (Gauss-Seidel)
# A sweep reads old values only: here a cell uses its left neighbour's new value.
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


# %% the halos of the two neighbours are the wrong way round
# The two halos are the wrong way round: the last cell of rank - 1 comes first.
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
# This agrees with the right value to 7 digits or so: float32 holds no more.
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
# The two halos are the wrong way round: the last cell of rank - 1 comes first.
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
