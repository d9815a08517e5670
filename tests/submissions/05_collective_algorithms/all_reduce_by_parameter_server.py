# %% right: one worker after the other
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total, box = x.clone(), torch.empty_like(x)
    if rank != server:
        dist.send(x, server)
        dist.recv(total, server)
        return total
    workers = [r for r in range(world_size) if r != server]
    for worker in workers:
        dist.recv(box, worker)
        total += box
    for worker in workers:
        dist.send(total, worker)
    return total


# %% right: whoever pushes first, all pulls at once
def all_reduce_by_parameter_server(rank, world_size, x, server):
    if rank == server:
        total = x
        pushed = []
        while len(pushed) < world_size - 1:
            box = torch.zeros_like(x)
            pushed.append(dist.recv(box))
            total = total + box
        for work in [dist.isend(total, dst=worker) for worker in pushed]:
            work.wait()
    else:
        total = torch.zeros_like(x)
        dist.isend(x, dst=server).wait()
        dist.irecv(total, src=server).wait()
    return total


# %% right: all receives posted first, summed as a stack
def push(x, server):
    dist.send(x, server)


def pull(like, server):
    weights = torch.empty_like(like)
    dist.recv(weights, server)
    return weights


def all_reduce_by_parameter_server(rank, world_size, x, server):
    if rank != server:
        push(x, server)
        return pull(x, server)
    everything = torch.empty(world_size, *x.shape, dtype=x.dtype)
    everything[server] = x
    works = [dist.irecv(everything[r], src=r) for r in range(world_size) if r != server]
    for work in works:
        work.wait()
    total = everything.sum(0)
    for r in range(world_size):
        if r != server:
            dist.send(total, dst=r)
    return total


# %% wrong: a gather to the server and a broadcast | forbidden call | says: only send and recv may be used
def all_reduce_by_parameter_server(rank, world_size, x, server):
    boxes = [torch.empty_like(x) for _ in range(world_size)] if rank == server else None
    dist.gather(x, boxes, dst=server)
    total = sum(boxes) if rank == server else torch.empty_like(x)
    dist.broadcast(total, src=server)
    return total


# %% wrong: a reduce at the server | forbidden call | says: only send and recv may be used
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total = x.clone()
    dist.reduce(total, server)
    dist.broadcast(total, server)
    return total


# %% wrong: rank 0 is always the server | wrong | says: here it sends only to
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total, box = x.clone(), torch.empty_like(x)
    if rank:
        dist.send(x, 0)
        dist.recv(total, 0)
        return total
    for worker in range(1, world_size):
        dist.recv(box, worker)
        total += box
    for worker in range(1, world_size):
        dist.send(total, worker)
    return total


# %% wrong: workers pull before they push | deadlocked | says: A cycle of receives
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total, box = x.clone(), torch.empty_like(x)
    if rank != server:
        dist.recv(total, server)
        dist.send(x, server)
        return total
    for worker in range(world_size):
        if worker != server:
            dist.recv(box, worker)
            total += box
    for worker in range(world_size):
        if worker != server:
            dist.send(total, worker)
    return total


# %% wrong: the sum is made in float64 | wrong | says: rank \d sends \d+ bytes; \d+ are enough
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total = x.double().clone()
    if rank != server:
        dist.send(total, server)
        dist.recv(total, server)
        return total.to(x.dtype)
    workers = [other for other in range(world_size) if other != server]
    box = torch.empty_like(total)
    for worker in workers:
        dist.recv(box, worker)
        total += box
    for worker in workers:
        dist.send(total, worker)
    return total.to(x.dtype)


# %% wrong: the server sends to itself | crashed | says: sends to itself
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total, box = torch.zeros_like(x), torch.empty_like(x)
    if rank == server:
        for worker in range(world_size):
            dist.recv(box, worker)
            total += box
        for worker in range(world_size):
            dist.send(total, worker)
        return total
    dist.send(x, server)
    dist.recv(total, server)
    return total
