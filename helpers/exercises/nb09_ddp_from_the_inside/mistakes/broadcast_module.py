# %% parameters only
# The parameters are right, but the buffers are not: broadcast `module.buffers()`, too.
def broadcast_module(module, src=0):
    for p in module.parameters():
        dist.broadcast(p.data, src)


# %% state_dict, which leaves a buffer out and names the shared weight twice
# `scale` is a buffer that state_dict() leaves out: `module.buffers()` returns all of them.
def broadcast_module(module, src=0):
    for tensor in module.state_dict().values():
        dist.broadcast(tensor, src)


# %% what is trained only
# The frozen parameters are not broadcast: forward uses them like the others.
def broadcast_module(module, src=0):
    for p in module.parameters():
        if p.requires_grad:
            dist.broadcast(p.data, src)
    for b in module.buffers():
        dist.broadcast(b, src)


# %% into a copy that nobody keeps
# Nothing has changed on this rank: receive into the module's own tensors.
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        dist.broadcast(t.detach().clone(), src)


# %% only the source calls | deadlocked
# Every rank must call broadcast: on rank src it sends, on the others it receives.
def broadcast_module(module, src=0):
    if dist.get_rank() == src:
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), src)


# %% other memory under the old names
# `p.data = ...` gives the parameter other memory. Views of the old memory, such as a flat bucket of
# parameters, miss the new values: receive into it, or use `copy_`.
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        box = t.detach().clone()
        dist.broadcast(box, src)
        t.data = box


# %% takes the gradient away from all parameters
# requires_grad has changed. Broadcast `p.detach()`: then requires_grad can stay as it is.
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        t.requires_grad_(False)
        dist.broadcast(t, src)


# %% what state_dict names
# `scale` is a buffer that state_dict() leaves out: `module.buffers()` returns all of them.
def broadcast_module(module, src=0):
    names = set(module.state_dict())
    for name, t in (*module.named_parameters(), *module.named_buffers()):
        if name in names:
            dist.broadcast(t.detach(), src)


# %% always from rank 0
# These are rank 0's values: broadcast from rank `src`, which is {src} here.
def broadcast_module(module, src=0):
    for t in (*module.parameters(), *module.buffers()):
        dist.broadcast(t.detach(), src=0)
