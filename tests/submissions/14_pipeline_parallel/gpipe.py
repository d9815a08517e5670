# %% right: two loops
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
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        grad = stage.backward(i, grad)
        if not first:
            dist.send(grad, rank - 1)


# %% right: helpers, isend, backwards in reverse order
def take(stage, peer):
    box = stage.empty()
    dist.irecv(box, peer).wait()
    return box


def gpipe(rank, world_size, stage, microbatches):
    sent = []
    for i in range(microbatches):
        y = stage.forward(i, take(stage, rank - 1) if rank else None)
        if rank + 1 < world_size:
            sent.append(dist.isend(y, rank + 1))
    for i in reversed(range(microbatches)):
        grad = stage.backward(i, take(stage, rank + 1) if rank + 1 < world_size else None)
        if rank:
            sent.append(dist.isend(grad, rank - 1))
    for work in sent:
        work.wait()


# %% right: all receives posted before, a batch for each transfer
def gpipe(rank, world_size, stage, microbatches):
    def post(peer):
        boxes = [stage.empty() for _ in range(microbatches)]
        return [(box, dist.irecv(box, peer)) for box in boxes]

    def give(tensor, peer):
        return dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor, peer)])

    works = []
    coming = post(rank - 1) if rank > 0 else None
    for i in range(microbatches):
        if coming:
            box, work = coming[i]
            work.wait()
            y = stage.forward(i, box)
        else:
            y = stage.forward(i)
        if rank < world_size - 1:
            works += give(y, rank + 1)
    coming = post(rank + 1) if rank < world_size - 1 else None
    for i in range(microbatches):
        if coming:
            box, work = coming[i]
            work.wait()
            g = stage.backward(i, box)
        else:
            g = stage.backward(i)
        if rank > 0:
            works += give(g, rank - 1)
    [w.wait() for w in works]


# %% right: the next activation is in flight while the stage computes
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1

    def start():
        box = stage.empty()
        return box, dist.irecv(box, rank - 1)

    following = None if first else start()
    for i in range(microbatches):
        x = None
        if not first:
            x, work = following
            work.wait()
            if i + 1 < microbatches:
                following = start()
        y = stage.forward(i, x)
        if not last:
            dist.send(y, rank + 1)
    for i in range(microbatches):
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        grad = stage.backward(i, grad)
        if not first:
            dist.send(grad, rank - 1)


# %% wrong: all activations are sent after all forwards | wrong | says: is idle meanwhile
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    ys = []
    for i in range(microbatches):
        x = None
        if not first:
            x = stage.empty()
            dist.recv(x, rank - 1)
        ys.append(stage.forward(i, x))
    if not last:
        for y in ys:
            dist.send(y, rank + 1)
    grads = []
    for i in range(microbatches):
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        grads.append(stage.backward(i, grad))
    if not first:
        for grad in grads:
            dist.send(grad, rank - 1)


# %% wrong: all activations are received before the first forward | wrong | says: waits for .* before its forward F0
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    xs = [stage.empty() for _ in range(microbatches)]
    if not first:
        for x in xs:
            dist.recv(x, rank - 1)
    for i in range(microbatches):
        y = stage.forward(i, None if first else xs[i])
        if not last:
            dist.send(y, rank + 1)
    for i in range(microbatches):
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        grad = stage.backward(i, grad)
        if not first:
            dist.send(grad, rank - 1)


# %% wrong: no backward | wrong | says: stage.backward once for each microbatch
def gpipe(rank, world_size, stage, microbatches):
    for i in range(microbatches):
        x = None
        if rank > 0:
            x = stage.empty()
            dist.recv(x, rank - 1)
        y = stage.forward(i, x)
        if rank < world_size - 1:
            dist.send(y, rank + 1)


# %% wrong: irecv without wait | wrong | says: by the time wait|waits for it
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    works = []
    for i in range(microbatches):
        x = None
        if not first:
            x = stage.empty()
            works.append(dist.irecv(x, rank - 1))
        y = stage.forward(i, x)
        if not last:
            dist.send(y, rank + 1)
    for work in works:
        work.wait()
    for i in range(microbatches):
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        grad = stage.backward(i, grad)
        if not first:
            dist.send(grad, rank - 1)


# %% wrong: the first rank passes a tensor of its own | crashed | says: call stage.forward\(i\) there
def gpipe(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    for i in range(microbatches):
        x = stage.empty()
        if not first:
            dist.recv(x, rank - 1)
        y = stage.forward(i, x)
        if not last:
            dist.send(y, rank + 1)
    for i in range(microbatches):
        grad = stage.empty()
        if not last:
            dist.recv(grad, rank + 1)
        grad = stage.backward(i, grad)
        if not first:
            dist.send(grad, rank - 1)


# %% right: a helper for each way, blocking
def take(stage, peer):
    box = stage.empty()
    dist.recv(box, peer)
    return box


def gpipe(rank, world_size, stage, microbatches):
    last = world_size - 1
    for i in range(microbatches):
        y = stage.forward(i, take(stage, rank - 1)) if rank else stage.forward(i)
        if rank < last:
            dist.send(tensor=y, dst=rank + 1)
    for i in range(microbatches):
        g = stage.backward(i) if rank == last else stage.backward(i, take(stage, rank + 1))
        if rank:
            dist.send(tensor=g, dst=rank - 1)


# %% wrong: a stage takes its inputs from elsewhere | crashed | says: a stage has no 'inputs' here
def take(stage, peer):
    box = stage.empty()
    dist.recv(box, peer)
    return box


def gpipe(rank, world_size, stage, microbatches):
    for i in range(microbatches):
        x = stage.inputs[i] if rank == 0 else take(stage, rank - 1)
        y = stage.forward(i, x)
        if rank < world_size - 1:
            dist.send(y, rank + 1)
