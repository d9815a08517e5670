def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Wrapper(torch.nn.Module):
    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)


# %% right: a function within __init__
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.started = module, []
        broadcast_module(module)

        def start(p):
            self.started.append((p, dist.all_reduce(p.grad, async_op=True)))

        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(start)

    def finish(self):
        for p, work in self.started:
            work.wait()
            p.grad /= dist.get_world_size()
        self.started.clear()


# %% right: divides before it adds, a method as hook, a dict
class HookedDDP(Wrapper):
    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        broadcast_module(module, 0)
        self.works = {}
        for p in filter(lambda p: p.requires_grad, module.parameters()):
            p.register_post_accumulate_grad_hook(self._hook)

    def _hook(self, p):
        p.grad.div_(dist.get_world_size())
        self.works[p] = dist.all_reduce(p.grad, async_op=True)

    def finish(self):
        while self.works:
            _, work = self.works.popitem()
            work.wait()


# %% right: AVG, and a copy that is put back
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module = module
        broadcast_module(module)
        self.pending = []
        for name, p in module.named_parameters():
            if not p.requires_grad:
                continue
            p.register_post_accumulate_grad_hook(self.reduce)

    @torch.no_grad()
    def reduce(self, p):
        copy = p.grad.clone()
        self.pending.append((p, copy, dist.all_reduce(copy, dist.ReduceOp.AVG, async_op=True)))

    @torch.no_grad()
    def finish(self):
        for p, copy, work in self.pending:
            work.wait()
            p.grad.copy_(copy)
        self.pending = []


# %% right: finishes by itself at the end of backward, as torch's does
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.started = module, []
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def start(self, p):
        if not self.started:
            torch.autograd.Variable._execution_engine.queue_callback(self.end)
        self.started.append((p, dist.all_reduce(p.grad, async_op=True)))

    def end(self):
        for p, work in self.started:
            work.wait()
            p.grad /= dist.get_world_size()
        self.started.clear()

    def finish(self):
        pass


# %% right: hooks on the tensors, which get the gradient itself
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module, self.started = module, []
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_hook(lambda grad, p=p: self.start(p, grad))

    def start(self, p, grad):
        mean = grad / dist.get_world_size()
        self.started.append((p, mean, dist.all_reduce(mean, async_op=True)))

    def finish(self):
        for p, mean, work in self.started:
            work.wait()
            p.grad = mean
        self.started.clear()


# %% wrong: all_reduce after backward | wrong | says: Issue each from a hook
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module = module
        broadcast_module(module)

    def finish(self):
        for p in self.module.parameters():
            if p.requires_grad and p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()


# %% wrong: the hook waits | wrong | says: Pass async_op=True
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module = module
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()

    def finish(self):
        pass


# %% wrong: async_op, and the wait in the hook | wrong | says: wait when all of them are in flight
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module = module
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        work = dist.all_reduce(p.grad, async_op=True)
        work.wait()
        p.grad /= dist.get_world_size()

    def finish(self):
        pass


# %% wrong: broadcasts the parameters before every forward | wrong | says: equal gradients keep them equal
class HookedDDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, []
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def forward(self, *inputs):
        broadcast_module(self.module)
        return self.module(*inputs)

    def start(self, p):
        self.works.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.works:
            work.wait()
            p.grad /= dist.get_world_size()
        self.works.clear()


# %% wrong: nobody waits | wrong | says: never calls wait\(\) on its Work
class HookedDDP(Wrapper):
    def __init__(self, module):
        super().__init__()
        self.module = module
        broadcast_module(module)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def start(self, p):
        p.grad /= dist.get_world_size()
        dist.all_reduce(p.grad, async_op=True)

    def finish(self):
        pass


# %% wrong: wraps torch's own | forbidden call | says: all_gather
from torch.nn.parallel import DistributedDataParallel


class HookedDDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.ddp = DistributedDataParallel(module, find_unused_parameters=True)

    def forward(self, *inputs):
        return self.ddp(*inputs)

    def finish(self):
        pass


# %% right: waits for all, then divides, latest first
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
        for _, work in reversed(self.started):
            work.wait()
        while self.started:
            p, _ = self.started.pop()
            p.grad.mul_(1 / dist.get_world_size())


# %% right: futures, and the weights as one vector
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


class HookedDDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, {}
        vector = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
        dist.broadcast(vector, 0)
        for p, part in zip(
            module.parameters(), vector.split([p.numel() for p in module.parameters()])
        ):
            p.data.copy_(part.view_as(p))
        for buffer in module.buffers():
            dist.broadcast(buffer, 0)
        self.handles = [
            p.register_post_accumulate_grad_hook(self.hook)
            for p in module.parameters()
            if p.requires_grad
        ]

    def hook(self, p):
        self.works[p] = dist.all_reduce(p.grad, op=dist.ReduceOp.SUM, async_op=True)

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def finish(self):
        works, self.works = self.works, {}
        for p, work in works.items():
            work.wait()
            p.grad = p.grad / dist.get_world_size()


# %% wrong: only what is trained is broadcast | wrong | says: after __init__, frozen.weight
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
        for p in module.parameters():
            if p.requires_grad:
                dist.broadcast(p.detach(), 0)
                p.register_post_accumulate_grad_hook(self.start)
