# %% from rank 0
# It is what rank 0 has: the source is a rank that has done most steps.
def rejoin(rank, world_size, steps, model, optimizer):
    if len(set(steps)) > 1:
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=0)
        model.load_state_dict(box[0][0])
        optimizer.load_state_dict(box[0][1])
    return max(steps)


# %% the optimizer is forgotten
# The weights are there, and the optimizer's state is not, or not all of it: its whole `state_dict()`,
# too.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, steps.index(most))
    return most


# %% parameters without buffers
# The parameters are there, and the buffers are not: `model.state_dict()` has both.
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
# It is the mean of all ranks: who is behind has nothing to add. Take over what the source has.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                dist.all_reduce(tensor)
                tensor /= world_size
    return most


# %% it returns the step that it had
# How many steps has a rank done when it has taken over?
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
# It still has what it began with.
def rejoin(rank, world_size, steps, model, optimizer):
    most = max(steps)
    if min(steps) < most:
        box = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(box, src=steps.index(most))
    return most


# %% new parameters, which the optimizer does not know
# The parameters are new tensors, which the optimizer does not have: write into those that there are, as
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
# The weights are there, and the optimizer's state is not, or not all of it: its whole `state_dict()`,
# too.
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
