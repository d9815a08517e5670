def take(stage, peer):
    box = stage.empty()
    dist.recv(box, peer)
    return box


# %% wrong: no backward | wrong | says: stage.backward once for each microbatch


# %% right: a helper for each way, blocking
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


# %% wrong: the activation goes on in place of what forward gave | wrong | says: Send what stage.forward returned onwards
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


# %% wrong: a stage takes its inputs from elsewhere | crashed | says: a stage has no 'inputs' here
def gpipe(rank, world_size, stage, microbatches):
    for i in range(microbatches):
        x = stage.inputs[i] if rank == 0 else take(stage, rank - 1)
        y = stage.forward(i, x)
        if rank < world_size - 1:
            dist.send(y, rank + 1)
