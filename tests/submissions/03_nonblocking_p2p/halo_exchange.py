# %% right: halos of one cell, works in a list
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
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% right: one padded tensor with ghost cells, received straight into it
def halo_exchange(rank, world_size, block, left, right, sweeps):
    u = torch.empty(len(block) + 2, dtype=block.dtype)
    u[1:-1] = block
    u[0], u[-1] = left, right
    for _ in range(sweeps):
        works = []
        for peer, edge, ghost in ((rank - 1, u[1:2], u[:1]), (rank + 1, u[-2:-1], u[-1:])):
            if 0 <= peer < world_size:
                works.append(dist.irecv(ghost, peer))
                works.append(dist.isend(edge, peer))
        for work in reversed(works):
            work.wait()
        u[1:-1] = 0.5 * (u[:-2] + u[2:])
    return u[1:-1]


# %% right: a batch, the inner cells while it is in flight
def halo_exchange(rank, world_size, block, left, right, sweeps):
    u = block.clone()
    for _ in range(sweeps):
        lo, hi = torch.full_like(u[:1], left), torch.full_like(u[:1], right)
        edges = u[[0, -1]]
        ops = []
        if rank:
            ops += [
                dist.P2POp(dist.isend, edges[:1], rank - 1),
                dist.P2POp(dist.irecv, lo, rank - 1),
            ]
        if rank + 1 < world_size:
            ops += [
                dist.P2POp(dist.isend, edges[1:], rank + 1),
                dist.P2POp(dist.irecv, hi, rank + 1),
            ]
        works = dist.batch_isend_irecv(ops) if ops else []
        new = torch.empty_like(u)
        new[1:-1] = (u[:-2] + u[2:]) / 2
        for work in works:
            work.wait()
        new[0] = (lo[0] + (u[1] if len(u) > 1 else hi[0])) / 2
        new[-1] = ((u[-2] if len(u) > 1 else lo[0]) + hi[0]) / 2
        u = new
    return u


# %% wrong: waits only for what it receives, then writes over what it sends | wrong | says: never waits for its isend
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
    return block


# %% wrong: sends the whole block | wrong | says: a neighbor needs one cell
def halo_exchange(rank, world_size, block, left, right, sweeps):
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(2)]
    mine = torch.tensor([len(block)])
    peers = [p for p in (rank - 1, rank + 1) if 0 <= p < world_size]
    works = [dist.isend(mine, p) for p in peers]
    works += [dist.irecv(sizes[i], p) for i, p in enumerate(peers)]
    for work in works:
        work.wait()
    for _ in range(sweeps):
        boxes = [torch.empty(int(sizes[i]), dtype=block.dtype) for i in range(len(peers))]
        works = [dist.isend(block, p) for p in peers]
        works += [dist.irecv(box, p) for box, p in zip(boxes, peers)]
        for work in works:
            work.wait()
        west, east = block.new_tensor([left]), block.new_tensor([right])
        for box, p in zip(boxes, peers):
            if p < rank:
                west = box[-1:]
            else:
                east = box[:1]
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% wrong: everything gathered on every rank | forbidden call | says: only send and recv may be used
def halo_exchange(rank, world_size, block, left, right, sweeps):
    blocks = [None] * world_size
    dist.all_gather_object(blocks, block)
    rod = torch.cat(blocks)
    for _ in range(sweeps):
        padded = torch.cat([rod.new_tensor([left]), rod, rod.new_tensor([right])])
        rod = (padded[:-2] + padded[2:]) / 2
    return rod.split([len(b) for b in blocks])[rank]


# %% wrong: one neighbor after the other | wrong | says: issue both, then wait
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = block.new_tensor([left]), block.new_tensor([right])
        for peer, edge, halo in ((rank - 1, block[:1], west), (rank + 1, block[-1:], east)):
            if 0 <= peer < world_size:
                works = [dist.isend(edge, peer), dist.irecv(halo, peer)]
                for work in works:
                    work.wait()
        padded = torch.cat([west, block, east])
        block = (padded[:-2] + padded[2:]) / 2
    return block


# %% wrong: the edges travel as float32 | wrong | says: one cell of the rod has 8
def halo_exchange(rank, world_size, block, left, right, sweeps):
    for _ in range(sweeps):
        west, east = torch.tensor([left]), torch.tensor([right])
        works = []
        if rank > 0:
            works += [dist.isend(block[:1].float(), rank - 1), dist.irecv(west, rank - 1)]
        if rank < world_size - 1:
            works += [dist.isend(block[-1:].float(), rank + 1), dist.irecv(east, rank + 1)]
        for work in works:
            work.wait()
        padded = torch.cat([west.to(block.dtype), block, east.to(block.dtype)])
        block = (padded[:-2] + padded[2:]) / 2
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


# %% wrong: the edges are overwritten before their sends are waited for | crashed | says: while it was in flight
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
