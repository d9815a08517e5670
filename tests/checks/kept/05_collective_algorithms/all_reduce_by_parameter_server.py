# %% wrong: rank 0 is always the server | wrong | says: here it sends only to


# %% wrong: only the server has the sum | wrong | says: on every path


# %% wrong: the server forgets its own gradient | wrong | says: of the server itself, rank \d, is missing


# %% wrong: the server sends to itself | crashed | says: receives from itself


# %% wrong: the mean, not the sum | wrong | says: dtype is float32, not int64


# %% wrong: adds to and receives into its input | wrong | says: has changed `x`


# %% wrong: workers pull before they push | deadlocked | says: rank


# %% wrong: the sum is made in float64 | wrong | says: , not -?\d
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


# %% wrong: gradients are taken for vectors | wrong | says: its shape is
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


# %% wrong: the pushes are added before they are waited for | wrong | says: , not -?\d
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
