# %% right: a ring
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(rank - i) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% right: the other way round the ring, in a batch, into one result
def overlapped_product(rank, world_size, x, weight, multiply):
    out = x.new_empty(world_size * len(x), weight.shape[1])
    boxes = [x.clone(), torch.empty_like(x)]
    there, here = (rank - 1) % world_size, (rank + 1) % world_size
    for i in range(world_size - 1):
        pair = [dist.P2POp(dist.irecv, boxes[1], here), dist.P2POp(dist.isend, boxes[0], there)]
        works = dist.batch_isend_irecv(pair)
        out.chunk(world_size)[(rank + i) % world_size].copy_(multiply(boxes[0], weight))
        for work in works:
            work.wait()
        boxes.reverse()
    out.chunk(world_size)[there].copy_(multiply(boxes[0], weight))
    return out


# %% right: everybody sends to everybody at once
def overlapped_product(rank, world_size, x, weight, multiply):
    others = [(rank + i) % world_size for i in range(1, world_size)]
    sends = [dist.isend(x, other) for other in others]
    boxes = {other: torch.empty_like(x) for other in others}
    recvs = {other: dist.irecv(box, other) for other, box in boxes.items()}
    parts = {rank: multiply(x, weight)}
    for other in others:
        recvs[other].wait()
        parts[other] = multiply(boxes[other], weight)
    for send in sends:
        send.wait()
    return torch.cat([parts[r] for r in range(world_size)])


# %% right: one partner a round
def overlapped_product(rank, world_size, x, weight, multiply):
    parts, rows, whose = [None] * world_size, x, rank
    for i in range(1, world_size):
        box, here = torch.empty_like(x), (rank - i) % world_size
        take, give = dist.irecv(box, here), dist.isend(x, (rank + i) % world_size)
        parts[whose] = multiply(rows, weight)
        take.wait()
        give.wait()
        rows, whose = box, here
    parts[whose] = multiply(rows, weight)
    return torch.cat(parts)


# %% wrong: waits before it multiplies | wrong | says: fetches nothing while it computes product 1
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        for work in works:
            work.wait()
        parts[(rank - i) % world_size] = multiply(rows, weight)
        rows = box
    return torch.cat(parts)


# %% wrong: multiplies before it starts | wrong | says: fetches nothing while it computes product 1
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        parts[(rank - i) % world_size] = multiply(rows, weight)
        if i == world_size - 1:
            break
        box = torch.empty_like(rows)
        works = [dist.isend(rows, (rank + 1) % world_size)]
        works += [dist.irecv(box, (rank - 1) % world_size)]
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% wrong: waits for the send first | wrong | says: starts its isend .* with no product in between
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        box, take = torch.empty_like(rows), None
        if i < world_size - 1:
            take = dist.irecv(box, (rank - 1) % world_size)
            dist.isend(rows, (rank + 1) % world_size).wait()
        parts[(rank - i) % world_size] = multiply(rows, weight)
        if take is not None:
            take.wait()
        rows = box
    return torch.cat(parts)


# %% wrong: waits for all after the first product | wrong | says: fetches nothing while it computes product 2
def overlapped_product(rank, world_size, x, weight, multiply):
    others = [(rank + i) % world_size for i in range(1, world_size)]
    boxes = {other: torch.empty_like(x) for other in others}
    works = [dist.irecv(box, other) for other, box in boxes.items()]
    works += [dist.isend(x, other) for other in others]
    parts = {rank: multiply(x, weight)}
    for work in works:
        work.wait()
    parts |= {other: multiply(box, weight) for other, box in boxes.items()}
    return torch.cat([parts[r] for r in range(world_size)])


# %% wrong: gathers, then multiplies | forbidden call | says: only send and recv may be used
def overlapped_product(rank, world_size, x, weight, multiply):
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    return torch.cat([multiply(part, weight) for part in parts])


# %% wrong: multiplies by itself | wrong | says: calls multiply\(\) 0 times
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        works, box = [], torch.empty_like(rows)
        if i < world_size - 1:
            works = [dist.isend(rows, (rank + 1) % world_size)]
            works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(rank - i) % world_size] = rows @ weight
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% wrong: one round too many | wrong | says: Each rank's rows come to each other rank once
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        box = torch.empty_like(rows)
        works = [dist.isend(rows, (rank + 1) % world_size)]
        works += [dist.irecv(box, (rank - 1) % world_size)]
        parts[(rank - i) % world_size] = multiply(rows, weight)
        for work in works:
            work.wait()
        rows = box
    return torch.cat(parts)


# %% wrong: never waits | wrong | says: (read before wait|never waits)
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        box = torch.empty_like(rows)
        if i < world_size - 1:
            dist.isend(rows, (rank + 1) % world_size)
            dist.irecv(box, (rank - 1) % world_size)
        parts[(rank - i) % world_size] = multiply(rows, weight)
        rows = box
    return torch.cat(parts)


# %% wrong: the plain calls | deadlocked | says: Start both transfers|receives from the rank before
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        box = torch.empty_like(rows)
        parts[(rank - i) % world_size] = multiply(rows, weight)
        if i < world_size - 1:
            dist.send(rows, (rank + 1) % world_size)
            dist.recv(box, (rank - 1) % world_size)
        rows = box
    return torch.cat(parts)


# %% wrong: a plain recv after the product | wrong | says: which waits at once; call irecv
def overlapped_product(rank, world_size, x, weight, multiply):
    rows, parts = x, [None] * world_size
    for i in range(world_size):
        box, give = torch.empty_like(rows), None
        if i < world_size - 1:
            give = dist.isend(rows, (rank + 1) % world_size)
        parts[(rank - i) % world_size] = multiply(rows, weight)
        if give is not None:
            dist.recv(box, (rank - 1) % world_size)
            give.wait()
        rows = box
    return torch.cat(parts)
