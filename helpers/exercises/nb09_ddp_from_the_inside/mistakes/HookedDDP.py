def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Wrapper(torch.nn.Module):
    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)


# %% the sum
# This is the sum over {n} ranks: divide by the world size, in finish().
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, []
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(
                    lambda p: self.works.append(dist.all_reduce(p.grad, async_op=True))
                )

    def finish(self):
        for work in self.works:
            work.wait()
        self.works.clear()


# %% AVG and a division
# It is divided by the world size twice: divide once, after the wait.
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, []
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def start(self, p):
        self.works.append((p, dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, async_op=True)))

    def finish(self):
        for p, work in self.works:
            work.wait()
            p.grad /= dist.get_world_size()
        self.works = []


# %% the list is never emptied | crashed
# A gradient is written to between its all_reduce and the wait: divide after it. Is what finish() keeps
# emptied? Else entries of the last step are divided once more, while this step's are under way.
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, []
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def start(self, p):
        self.works.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.works:
            work.wait()
            p.grad /= dist.get_world_size()


# %% never broadcasts
# Broadcast the module in __init__, on every rank: `broadcast_module(module)`.
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, []
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def start(self, p):
        self.works.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.works:
            work.wait()
            p.grad /= dist.get_world_size()
        self.works.clear()


# %% hooks on frozen parameters too | crashed
# Frozen parameters have no gradient and take no hook: skip them.
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, []
        broadcast_module(module)
        for p in module.parameters():
            p.register_post_accumulate_grad_hook(self.start)

    def start(self, p):
        self.works.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.works:
            work.wait()
            p.grad /= dist.get_world_size()
        self.works.clear()


# %% divides what nobody used | crashed
# A parameter that nobody used has no gradient: in finish() go through what hooks have started, not
# through all parameters.
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, []
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(
                    lambda p: self.works.append(dist.all_reduce(p.grad, async_op=True))
                )

    def finish(self):
        for work in self.works:
            work.wait()
        self.works.clear()
        for p in self.module.parameters():
            if p.requires_grad:
                p.grad /= dist.get_world_size()


# %% divides before it waits | crashed
# A gradient is written to between its all_reduce and the wait: divide after it. Is what finish() keeps
# emptied? Else entries of the last step are divided once more, while this step's are under way.
class Base(torch.nn.Module):
    """All but the hook and finish."""

    def __init__(self, module):
        super().__init__()
        self.module, self.started = module, []
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def start(self, p):
        self.started.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.started:
            work.wait()
            p.grad /= dist.get_world_size()
        self.started.clear()


class HookedDDP(Base):
    def finish(self):
        for p, work in self.started:
            p.grad /= dist.get_world_size()
            work.wait()
        self.started.clear()


# %% the mean of a copy is dropped
# For this parameter the mean never reaches `p.grad`. Does its hook run? Then what is reduced must be
# `p.grad` itself, or be copied back into it in finish().
class Base(torch.nn.Module):
    """All but the hook and finish."""

    def __init__(self, module):
        super().__init__()
        self.module, self.started = module, []
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def start(self, p):
        self.started.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.started:
            work.wait()
            p.grad /= dist.get_world_size()
        self.started.clear()


class HookedDDP(Base):
    def start(self, p):
        self.started.append((p, dist.all_reduce(p.grad.clone(), async_op=True)))

    def finish(self):
        for _, work in self.started:
            work.wait()
        self.started.clear()


# %% the buffers are no longer broadcast
# forward() broadcasts the buffers from rank 0 before the module runs: leave that in.
class Base(torch.nn.Module):
    """All but the hook and finish."""

    def __init__(self, module):
        super().__init__()
        self.module, self.started = module, []
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def start(self, p):
        self.started.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.started:
            work.wait()
            p.grad /= dist.get_world_size()
        self.started.clear()


class HookedDDP(Base):
    def forward(self, *inputs):
        return self.module(*inputs)


# %% hooks on the layers' last loop variable | crashed
# A hook is called with its parameter: use that. A lambda or function made in a loop sees the loop's last
# `p`, whose gradient is not there yet.
class Base(torch.nn.Module):
    """All but the hook and finish."""

    def __init__(self, module):
        super().__init__()
        self.module, self.started = module, []
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def start(self, p):
        self.started.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.started:
            work.wait()
            p.grad /= dist.get_world_size()
        self.started.clear()


class HookedDDP(Base):
    def __init__(self, module):
        torch.nn.Module.__init__(self)
        self.module, self.started = module, []
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), 0)
        trained = [p for p in module.parameters() if p.requires_grad]
        for p in reversed(trained):
            p.register_post_accumulate_grad_hook(lambda _: self.start(p))


# %% only rank 0's hooks start anything | deadlocked
# Every rank must make the same calls in the same order, in __init__ and in every step.
class Base(torch.nn.Module):
    """All but the hook and finish."""

    def __init__(self, module):
        super().__init__()
        self.module, self.started = module, []
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def start(self, p):
        self.started.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.started:
            work.wait()
            p.grad /= dist.get_world_size()
        self.started.clear()


class HookedDDP(Base):
    def start(self, p):
        if dist.get_rank() == 0:
            super().start(p)
