# %% parameters only
# The parameters are right; the buffers, `module.buffers()`, must be equal too.
def broadcast_module(module, src=0):
    for p in module.parameters():
        dist.broadcast(p.data, src)


# %% state_dict, which leaves a buffer out and names the shared weight twice
# `scale` is a buffer that state_dict() leaves out. `module.buffers()` gives all of them.
def broadcast_module(module, src=0):
    for tensor in module.state_dict().values():
        dist.broadcast(tensor, src)


# %% what is trained only
# Frozen parameters take part in forward like any other: broadcast them too.
def broadcast_module(module, src=0):
    for p in module.parameters():
        if p.requires_grad:
            dist.broadcast(p.data, src)
    for b in module.buffers():
        dist.broadcast(b, src)


# %% into a copy that nobody keeps
# After the call every rank holds exactly what rank `src` had, tensor by tensor: here nothing has changed.
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        dist.broadcast(t.detach().clone(), src)


# %% only the source calls | deadlocked
# Every rank makes the same calls: on rank src broadcast sends, on the others it receives.
def broadcast_module(module, src=0):
    if dist.get_rank() == src:
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), src)


# %% other memory under the old names
# `p.data = ...` puts other memory under the old name. Whoever has a view of the first one, as a bucket of
# gradients or weights has, misses the new values: receive into it, or `copy_`.
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        box = t.detach().clone()
        dist.broadcast(box, src)
        t.data = box


# %% takes the gradient away from all parameters
# Receive into the tensors that the model has: `dist.broadcast(p.detach(), src)`.
def broadcast_module(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        t.requires_grad_(False)
        dist.broadcast(t, src)
