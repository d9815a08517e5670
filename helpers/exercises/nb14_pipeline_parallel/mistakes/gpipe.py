# %% each microbatch forward and backward before the next
# GPipe is two loops: one with all forwards, then one with all backwards.
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
# Receive each activation into a tensor of its own: call stage.empty() for each.
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
# A stage is given what belongs to another microbatch. Between two ranks messages arrive in the order in
# which they were sent: both sides must take the microbatches in the same order.
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
# Count the messages: rank r receives an activation from r - 1 for each microbatch (the first rank none),
# and a gradient from r + 1 (the last rank none).
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
# Send what stage.forward returned onwards, and what stage.backward returned back.
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
# Send what stage.forward returned onwards, and what stage.backward returned back.
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
