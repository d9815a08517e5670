# %% right: a loop over parameters and buffers
def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


# %% right: data, all in flight, waits afterwards
def broadcast_module(module: torch.nn.Module, src: int = 0) -> None:
    works = [dist.broadcast(p.data, src=src, async_op=True) for p in module.parameters()]
    works += [dist.broadcast(b, src=src, async_op=True) for b in module.buffers()]
    for work in works:
        work.wait()


# %% right: under no_grad, itertools, returns the module
from itertools import chain


def broadcast_module(module, src=0):
    with torch.no_grad():
        for t in chain(module.parameters(), module.buffers()):
            dist.broadcast(t, src)
    return module


# %% right: flat tensors by dtype, copied back
def broadcast_module(module, src=0):
    kinds = {}
    for t in list(module.parameters()) + list(module.buffers()):
        kinds.setdefault(t.dtype, []).append(t.detach())
    for tensors in kinds.values():
        flat = torch.cat([t.reshape(-1) for t in tensors])
        dist.broadcast(flat, src)
        for t, part in zip(tensors, flat.split([t.numel() for t in tensors])):
            t.copy_(part.view_as(t))


# %% wrong: new parameters | wrong | says: Receive into the tensors that the model has
def broadcast_module(module, src=0):
    for m in module.modules():
        for name, p in list(m.named_parameters(recurse=False)):
            new = p.detach().clone()
            dist.broadcast(new, src)
            setattr(m, name, torch.nn.Parameter(new, requires_grad=p.requires_grad))
    for b in module.buffers():
        dist.broadcast(b, src)


# %% wrong: the mean instead of rank src's | wrong | says: only broadcast may be used
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        if t.is_floating_point():
            dist.all_reduce(t.data)
            t.data /= dist.get_world_size()


# %% wrong: the shared weight by both names | wrong | says: A weight with two names travels once
def broadcast_module(module, src=0):
    for m in module.modules():
        for t in [*m.parameters(recurse=False), *m.buffers(recurse=False)]:
            dist.broadcast(t.detach(), src)


# %% right: received beside, copied into place
def broadcast_module(module, src=0):
    with torch.no_grad():
        for t in [*module.parameters(), *module.buffers()]:
            box = t.clone()
            dist.broadcast(box, src)
            t.copy_(box)


# %% right: one flat vector of bytes
def broadcast_module(module, src=0):
    tensors = [t.detach() for t in [*module.parameters(), *module.buffers()]]
    box = torch.cat(
        [
            t.clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8)
            for t in tensors
        ]
    )
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
