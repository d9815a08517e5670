# %% from rank 0
# This is rank 0's state. The source must be a rank that has made the most steps.
def rejoin(rank, world_size, steps, model, optimizer):
    if len(set(steps)) > 1:
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=0)
        model.load_state_dict(box[0][0])
        optimizer.load_state_dict(box[0][1])
    return max(steps)


# %% the optimizer is forgotten
# The weights are those of the source, but the state of the given optimizer is not, or not all of it. Send
# the whole `state_dict()` of the source's optimizer, and load it into the given optimizer.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, steps.index(most))
    return most


# %% parameters without buffers
# The parameters are those of the source, the buffers are not. `model.state_dict()` has both.
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


# %% the mean of all
# This is the mean of all ranks' states. A replica that is behind copies the state of one that is ahead.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                dist.all_reduce(tensor)
                tensor /= world_size
    return most


# %% it returns the step that it had
# The number of steps that is returned is the old one. After it has copied the state, a rank has made as
# many steps as the source.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        source = steps.index(most)
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=source)
        model.load_state_dict(box[0][0])
        optimizer.load_state_dict(box[0][1])
    return steps[rank]


# %% received, and not loaded
# This is still the old state. Load what was received into the model and the optimizer.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=steps.index(most))
    return most


# %% new parameters, which the optimizer does not know
# The model's parameters are new tensors, which the optimizer does not know. Write into those that exist, as
# `load_state_dict` does.
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


# %% the optimizer keeps a learning rate of its own
# The weights are those of the source, but the state of the given optimizer is not, or not all of it. Send
# the whole `state_dict()` of the source's optimizer, and load it into the given optimizer.
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


# %% from rank 0, to those that are behind
# This is rank 0's state. The source must be a rank that has made the most steps.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        box = [(model.state_dict(), optimizer.state_dict()) if rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        if steps[rank] < most:
            model.load_state_dict(box[0][0])
            optimizer.load_state_dict(box[0][1])
    return most


# %% only those that have made the fewest steps
# Every rank that has made fewer steps than the source must copy the state, not only one with the fewest.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        source = steps.index(most)
        box = [(model.state_dict(), optimizer.state_dict()) if rank == source else None]
        dist.broadcast_object_list(box, src=source)
        if steps[rank] == min(steps):
            model.load_state_dict(box[0][0])
            optimizer.load_state_dict(box[0][1])
    return most


# %% from one that has made the fewest steps
# This is the state of a rank that has made the fewest steps. The source must be one that has made the most.
def rejoin(rank, world_size, steps, model, optimizer):
    fewest = min(steps)
    if fewest < max(steps):
        source = steps.index(fewest)
        box = [(model.state_dict(), optimizer.state_dict()) if rank == source else None]
        dist.broadcast_object_list(box, src=source)
        if rank != source:
            model.load_state_dict(box[0][0])
            optimizer.load_state_dict(box[0][1])
    return max(steps)


# %% a new optimizer, which only the function knows
# The weights are those of the source, but the state of the given optimizer is not, or not all of it. Send
# the whole `state_dict()` of the source's optimizer, and load it into the given optimizer.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        source = steps.index(most)
        box = [(model.state_dict(), optimizer.state_dict()) if rank == source else None]
        dist.broadcast_object_list(box, src=source)
        if steps[rank] < most:
            model.load_state_dict(box[0][0])
            optimizer = type(optimizer)(model.parameters(), lr=0.1)
            optimizer.load_state_dict(box[0][1])
    return most
