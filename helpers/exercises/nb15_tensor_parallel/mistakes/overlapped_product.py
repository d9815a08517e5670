# %% in the order in which they came
# The blocks are in the order in which they came: the rows of rank 0 come first, on every rank.
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, []
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts.append(multiply(rows, weight))
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% the ring turns the other way
# These are the products of all ranks' rows, but not each in its rank's place: whose rows are multiplied
# in which round?
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(rank + i) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% adds up
# The products of the blocks are rows of the result, side by side: nothing is summed.
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, total = x, 0
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        total = total + multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return total


# %% receives into what it sends | crashed
# Rows that are being sent, and a buffer that is being filled, are left alone until wait(): receive into a
# new tensor, or take two buffers in turn.
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x.clone(), [None] * world_size
    for i in range(world_size):
        works = []
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(rows, (rank - 1) % world_size)]
        parts[(rank - i) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
    return torch.cat(parts)


# %% the product goes into the place of the rows that come next
# These are the products of all ranks' rows, but not each in its rank's place: whose rows are multiplied
# in which round?
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(rank - i - 1) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% counted from rank 0
# These are the products of all ranks' rows, but not each in its rank's place: whose rows are multiplied
# in which round?
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(i - rank) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% a plain recv after the send's wait | deadlocked
# All ranks wait for a send, and none of them receives meanwhile: start the receive, too, before you wait
# for anything.
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        box, give = torch.empty_like(rows), None
        if i < world_size - 1:
            give = dist.isend(rows, (rank + 1) % world_size)
        parts[(rank - i) % world_size] = multiply(rows, weight)
        if give is not None:
            give.wait()
            dist.recv(box, (rank - 1) % world_size)
        rows = box
    return torch.cat(parts)
