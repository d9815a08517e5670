# %% right: both states as objects
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) == most:
        return most
    source = steps.index(most)
    box = [(model.state_dict(), optimizer.state_dict())] if rank == source else [None]
    dist.broadcast_object_list(box, src=source)
    if steps[rank] < most:
        model.load_state_dict(box[0][0])
        optimizer.load_state_dict(box[0][1])
    return most


# %% right: tensors by broadcast, the optimizer as an object; those who are level take it, too
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if any(s < most for s in steps):
        source = min(r for r in range(world_size) if steps[r] == most)
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, source)
        box = [optimizer.state_dict()]
        dist.broadcast_object_list(box, src=source)
        optimizer.load_state_dict(box[0])
    return most


# %% wrong: everything travels in every round | wrong | says: nothing needs to be sent
def rejoin(rank, world_size, steps, model, optimizer):
    source = steps.index(max(steps))
    box = [(model.state_dict(), optimizer.state_dict())]
    dist.broadcast_object_list(box, src=source)
    model.load_state_dict(box[0][0])
    optimizer.load_state_dict(box[0][1])
    return max(steps)


# %% wrong: only those who are behind call | deadlocked | says: rank 0 must call broadcast_object_list too
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    source = steps.index(most)
    if steps[rank] < most:
        box = [None]
        dist.broadcast_object_list(box, src=source)
        model.load_state_dict(box[0][0])
        optimizer.load_state_dict(box[0][1])
    return most


# %% right: the source sends to each that is behind
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    source = steps.index(most)
    if rank == source:
        for r in range(world_size):
            if steps[r] != most:
                dist.send_object_list([model.state_dict(), optimizer.state_dict()], dst=r)
    elif steps[rank] != most:
        got = [None, None]
        dist.recv_object_list(got, src=source)
        model.load_state_dict(got[0])
        optimizer.load_state_dict(got[1])
    return most


# %% right: scattered
def rejoin(rank, world_size, steps, model, optimizer):
    top = max(steps)
    behind = [r for r, s in enumerate(steps) if s < top]
    if behind:
        source = steps.index(top)
        outs, box = None, [None]
        if rank == source:
            state = (model.state_dict(), optimizer.state_dict())
            outs = [state if r in behind else None for r in range(world_size)]
        dist.scatter_object_list(box, outs, src=source)
        if rank in behind:
            model.load_state_dict(box[0][0])
            optimizer.load_state_dict(box[0][1])
    return top


# %% wrong: replicas that have nothing are forgotten | deadlocked | says: still waits for it in broadcast_object_list
def rejoin(rank, world_size, steps, model, optimizer):
    if steps[rank] < 0:
        return max(steps)
    most = max(steps)
    if min(steps) < most:
        source = steps.index(most)
        box = [(model.state_dict(), optimizer.state_dict()) if rank == source else None]
        dist.broadcast_object_list(box, src=source)
        model.load_state_dict(box[0][0])
        optimizer.load_state_dict(box[0][1])
    return most
