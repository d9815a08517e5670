# %% each microbatch forward and backward before the next
# A backward runs before the last forward. GPipe has two loops: all forwards, then all backwards.
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    for i in range(microbatches):
        x = None
        if not first:
            x = stage.empty()
            dist.recv(x, rank - 1)
        y = stage.forward(i, x)
        if not last:
            dist.send(y, rank + 1)
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        grad = stage.backward(i, grad)
        if not first:
            dist.send(grad, rank - 1)


# %% one tensor for all activations
# An activation was overwritten by the next one before its backward. Receive each activation into a tensor
# of its own: call stage.empty() for each.
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    box = stage.empty()
    for i in range(microbatches):
        if not first:
            dist.recv(box, rank - 1)
        y = stage.forward(i, None if first else box)
        if not last:
            dist.send(y, rank + 1)
    for i in range(microbatches):
        if not last:
            dist.recv(box, rank + 1)
        grad = stage.backward(i, None if last else box)
        if not first:
            dist.send(grad, rank - 1)


# %% stages disagree on the order of the backwards
# A stage computed with a tensor that belongs to another microbatch. Messages between two ranks arrive in
# the order in which they were sent, so both sides must take the microbatches in the same order.
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    for i in range(microbatches):
        x = None
        if not first:
            x = stage.empty()
            dist.recv(x, rank - 1)
        y = stage.forward(i, x)
        if not last:
            dist.send(y, rank + 1)
    for i in reversed(range(microbatches)) if last else range(microbatches):
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        grad = stage.backward(i, grad)
        if not first:
            dist.send(grad, rank - 1)


# %% the last stage sends on to rank 0 | deadlocked
# There is no ring: the last stage sends no activation and the first no gradient, and nobody receives from
# them. Treat the first and the last rank differently.
def gpipe(rank, world_size, stage, microbatches):
    for i in range(microbatches):
        x = stage.empty()
        dist.recv(x, (rank - 1) % world_size)
        y = stage.forward(i, x)
        dist.send(y, (rank + 1) % world_size)
    for i in range(microbatches):
        grad = stage.empty()
        dist.recv(grad, (rank + 1) % world_size)
        dist.send(stage.backward(i, grad), (rank - 1) % world_size)


# %% the gradient that came in is passed on
# A stage got the wrong gradient: the rank after it must send what its own stage.backward returned, not what
# it received.
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    for i in range(microbatches):
        x = None
        if not first:
            x = stage.empty()
            dist.recv(x, rank - 1)
        y = stage.forward(i, x)
        if not last:
            dist.send(y, rank + 1)
    for i in range(microbatches):
        grad = stage.empty()
        if not last:
            dist.recv(grad, rank + 1)
        back = stage.backward(i, None if last else grad)
        if not first:
            dist.send(grad if not last else torch.ones_like(back), rank - 1)


# %% the activation goes on in place of what forward gave
# A stage got the wrong activation: the rank before it must send what its own stage.forward returned.
def take(stage, peer):
    box = stage.empty()
    dist.recv(box, peer)
    return box


def gpipe(rank, world_size, stage, microbatches):
    last = world_size - 1
    for i in range(microbatches):
        x = take(stage, rank - 1) if rank else None
        y = stage.forward(i, x)
        if rank < last:
            dist.send(torch.ones_like(y), rank + 1)
    for i in range(microbatches):
        g = stage.backward(i) if rank == last else stage.backward(i, take(stage, rank + 1))
        if rank:
            dist.send(g, rank - 1)


# %% the first stage sends a gradient | crashed
# stage.backward returns None on the first stage: nobody is before it, so it sends no gradient.
def gpipe(rank, world_size, stage, microbatches):
    last = rank == world_size - 1
    for i in range(microbatches):
        x = None
        if rank:
            x = stage.empty()
            dist.recv(x, rank - 1)
        y = stage.forward(i, x)
        if not last:
            dist.send(y, rank + 1)
    for i in range(microbatches):
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        dist.send(stage.backward(i, grad), (rank - 1) % world_size)
