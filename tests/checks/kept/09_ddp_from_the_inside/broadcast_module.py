# %% wrong: always from rank 0 | wrong | says: the source is `src`, here rank \d


# %% wrong: the mean instead of rank src's | wrong | says: only broadcast may be used


# %% right: one flat vector of bytes
def broadcast_module(module, src=0):
    tensors = [t.detach() for t in [*module.parameters(), *module.buffers()]]
    box = torch.cat([t.clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8) for t in tensors])
    dist.broadcast(box, src)
    for t, part in zip(tensors, box.split([t.numel() * t.element_size() for t in tensors])):
        t.copy_(part.clone().view(t.dtype).reshape(t.shape))


# %% right: found module by module, a shared one remembered
def broadcast_module(module, src=0):
    known = set()
    for part in module.modules():
        for t in [*part._parameters.values(), *part._buffers.values()]:
            if t is not None and id(t) not in known:
                known.add(id(t))
                with torch.no_grad():
                    dist.broadcast(t, src)


# %% wrong: everything as an object | forbidden call | says: only broadcast may be used
def broadcast_module(module, src=0):
    box = [[t.detach() for t in [*module.parameters(), *module.buffers()]]]
    for t in [*module.parameters(), *module.buffers()]:
        every = [None] * dist.get_world_size()
        dist.all_gather_object(every, t.detach())
        t.data.copy_(every[src])


# %% wrong: integers go through float32 | wrong | says: broadcast in all
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        box = t.detach().double()
        dist.broadcast(box, src)
        t.data.copy_(box)


# %% wrong: nobody waits | wrong | says: never calls wait
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        dist.broadcast(t.detach(), src, async_op=True)


# %% wrong: takes the gradient away from all parameters | wrong | says: requires_grad has changed
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        t.requires_grad_(False)
        dist.broadcast(t, src)
