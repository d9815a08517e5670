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


# %% wrong: the list is never emptied | wrong | says: Is what finish\(\) keeps emptied


# %% wrong: nobody waits | wrong | says: never calls wait\(\) on its Work


# %% right: waits for all, then divides, latest first
class HookedDDP(Base):
    def finish(self):
        for _, work in reversed(self.started):
            work.wait()
        while self.started:
            p, _ = self.started.pop()
            p.grad.mul_(1 / dist.get_world_size())


# %% right: futures, and the weights as one vector
class HookedDDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, {}
        vector = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
        dist.broadcast(vector, 0)
        for p, part in zip(module.parameters(), vector.split([p.numel() for p in module.parameters()])):
            p.data.copy_(part.view_as(p))
        for buffer in module.buffers():
            dist.broadcast(buffer, 0)
        self.handles = [
            p.register_post_accumulate_grad_hook(self.hook) for p in module.parameters() if p.requires_grad
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


# %% wrong: divides before it waits | wrong | says: between its all_reduce and the wait
class HookedDDP(Base):
    def finish(self):
        for p, work in self.started:
            p.grad /= dist.get_world_size()
            work.wait()
        self.started.clear()


# %% wrong: the mean of a copy is dropped | wrong | says: the mean never reaches `p.grad`
class HookedDDP(Base):
    def start(self, p):
        self.started.append((p, dist.all_reduce(p.grad.clone(), async_op=True)))

    def finish(self):
        for _, work in self.started:
            work.wait()
        self.started.clear()


# %% wrong: the buffers are no longer broadcast | wrong | says: forward\(\) broadcasts the buffers
class HookedDDP(Base):
    def forward(self, *inputs):
        return self.module(*inputs)


# %% wrong: hooks on the layers' last loop variable | crashed | says: sees the loop's last `p`
class HookedDDP(Base):
    def __init__(self, module):
        torch.nn.Module.__init__(self)
        self.module, self.started = module, []
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), 0)
        trained = [p for p in module.parameters() if p.requires_grad]
        for p in reversed(trained):
            p.register_post_accumulate_grad_hook(lambda _: self.start(p))


# %% wrong: only rank 0's hooks start anything | deadlocked | says: same calls in the same order
class HookedDDP(Base):
    def start(self, p):
        if dist.get_rank() == 0:
            super().start(p)


# %% wrong: only what is trained is broadcast | wrong | says: after __init__, frozen.weight
class HookedDDP(Base):
    def __init__(self, module):
        torch.nn.Module.__init__(self)
        self.module, self.started = module, []
        for p in module.parameters():
            if p.requires_grad:
                dist.broadcast(p.detach(), 0)
                p.register_post_accumulate_grad_hook(self.start)
