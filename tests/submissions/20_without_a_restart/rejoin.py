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


# %% wrong: from rank 0 | wrong | says: the source is a rank that has done most steps
def rejoin(rank, world_size, steps, model, optimizer):
    if len(set(steps)) > 1:
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=0)
        model.load_state_dict(box[0][0])
        optimizer.load_state_dict(box[0][1])
    return max(steps)


# %% wrong: the optimizer is forgotten | wrong | says: its whole `state_dict\(\)`, too
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, steps.index(most))
    return most


# %% wrong: parameters without buffers | wrong | says: the buffers are not
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        source = steps.index(most)
        for p in model.parameters():
            dist.broadcast(p.data, source)
        box = [optimizer.state_dict()]
        dist.broadcast_object_list(box, src=source)
        optimizer.load_state_dict(box[0])
    return most


# %% wrong: everything travels in every round | wrong | says: nothing has to travel
def rejoin(rank, world_size, steps, model, optimizer):
    source = steps.index(max(steps))
    box = [(model.state_dict(), optimizer.state_dict())]
    dist.broadcast_object_list(box, src=source)
    model.load_state_dict(box[0][0])
    optimizer.load_state_dict(box[0][1])
    return max(steps)


# %% wrong: the mean of all | wrong | says: mean of all ranks
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                dist.all_reduce(tensor)
                tensor /= world_size
    return most


# %% wrong: it returns the step that it had | wrong | says: How many steps has a rank done
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        source = steps.index(most)
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=source)
        model.load_state_dict(box[0][0])
        optimizer.load_state_dict(box[0][1])
    return steps[rank]


# %% wrong: received, and not loaded | wrong | says: It still has what it began with
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=steps.index(most))
    return most


# %% wrong: new parameters, which the optimizer does not know | wrong | says: new tensors, which the optimizer does not have
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        source = steps.index(most)
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=source)
        if steps[rank] < most:
            optimizer.load_state_dict(box[0][1])
            old = dict(model.named_parameters())
            model.load_state_dict(box[0][0], assign=True)
            for name, p in model.named_parameters():
                if old[name] in optimizer.state:
                    optimizer.state[p] = optimizer.state.pop(old[name])
    return most


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


# %% wrong: the optimizer keeps a learning rate of its own | wrong | says: its whole `state_dict\(\)`, too
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        source = steps.index(most)
        box = [(model.state_dict(), optimizer.state_dict()["state"])]
        dist.broadcast_object_list(box, src=source)
        if steps[rank] < most:
            model.load_state_dict(box[0][0])
            own = optimizer.state_dict()
            optimizer.load_state_dict({"state": box[0][1], "param_groups": own["param_groups"]})
    return most
