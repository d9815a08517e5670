# %% the server forgets its own gradient
# The gradient of the server itself, rank {server}, is missing in the sum.
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total, box = torch.zeros_like(x), torch.empty_like(x)
    if rank != server:
        dist.send(x, server)
        dist.recv(total, server)
        return total
    for worker in range(world_size):
        if worker != server:
            dist.recv(box, worker)
            total += box
    for worker in range(world_size):
        if worker != server:
            dist.send(total, worker)
    return total


# %% each worker is answered before the next has pushed
# The server has the whole sum, some worker has not: first all push, then all pull.
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total, box = x.clone(), torch.empty_like(x)
    if rank != server:
        dist.send(x, server)
        dist.recv(total, server)
        return total
    for worker in range(world_size):
        if worker != server:
            dist.recv(box, worker)
            total += box
            dist.send(total, worker)
    return total


# %% the server sends to itself | crashed
# A rank sends to itself or receives from itself. What it has already needs no message.
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


# %% the mean, not the sum
# This is {n} times too small: is it divided by the world size once too often?
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total, box = x.clone(), torch.empty_like(x)
    if rank != server:
        dist.send(x, server)
        dist.recv(total, server)
        return total
    for worker in range(world_size):
        if worker != server:
            dist.recv(box, worker)
            total += box
    total = (total / world_size).to(x.dtype)
    for worker in range(world_size):
        if worker != server:
            dist.send(total, worker)
    return total


# %% adds to and receives into its input
# The caller still needs what it gave: work on a copy, such as `x.clone()`.
def all_reduce_by_parameter_server(rank, world_size, x, server):
    if rank != server:
        dist.send(x, server)
        dist.recv(x, server)
        return x
    box = torch.empty_like(x)
    for worker in range(world_size):
        if worker != server:
            dist.recv(box, worker)
            x += box
    for worker in range(world_size):
        if worker != server:
            dist.send(x, worker)
    return x


# %% the pushes are added before they are waited for
# This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous
# call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic
# made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it.
def all_reduce_by_parameter_server(rank, world_size, x, server):
    import time

    if rank != server:
        total = torch.empty_like(x)
        dist.send(x, server)
        dist.recv(total, server)
        return total
    workers = [other for other in range(world_size) if other != server]
    boxes = [torch.empty_like(x) for _ in workers]
    works = [dist.irecv(box, worker) for box, worker in zip(boxes, workers)]
    time.sleep(0.2)
    total = x + sum(boxes)
    for work in works:
        work.wait()
    for worker in workers:
        dist.send(total, worker)
    return total
