# %% the server forgets its own gradient
# The server's own gradient, that of rank {server}, is missing from the sum.
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
# The server answers a worker before the others have pushed, so early workers get partial sums. Receive from
# all workers first, then send the sum to all.
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


# %% the mean, not the sum
# This is the sum divided by the number of ranks. Return the sum.
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
# `x` was changed, but it must keep its values. Work on a copy: `x.clone()`.
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
# A tensor was added or returned before the `wait()` of its receive returned, so it held no data yet. Wait
# first, then use the tensor.
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


# %% only the server has the sum
# Only the server returns the sum; the workers return None. Return it on every rank.
def all_reduce_by_parameter_server(rank, world_size, x, server):
    if rank != server:
        dist.send(x, server)
        return None
    total, box = x.clone(), torch.empty_like(x)
    for worker in range(world_size):
        if worker != server:
            dist.recv(box, worker)
            total += box
    return total


# %% gradients are taken for vectors
# The values are right, but flat. Keep the shape of `x`.
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total = x.flatten().clone()
    if rank != server:
        dist.send(total, server)
        dist.recv(total, server)
        return total
    box = torch.empty_like(total)
    for worker in range(world_size):
        if worker != server:
            dist.recv(box, worker)
            total += box
    for worker in range(world_size):
        if worker != server:
            dist.send(total, worker)
    return total


# %% the mean, where only the server divides
# This is the sum divided by the number of ranks. Return the sum.
def all_reduce_by_parameter_server(rank, world_size, x, server):
    total = x.clone()
    if rank != server:
        dist.send(x, server)
        dist.recv(total, server)
        return total
    box = torch.empty_like(x)
    for worker in range(world_size):
        if worker != server:
            dist.recv(box, worker)
            total += box
    total = total / world_size
    for worker in range(world_size):
        if worker != server:
            dist.send(total, worker)
    return total
