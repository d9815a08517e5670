def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Common(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.works = module, []
        self.broadcast()
        self.register()

    def broadcast(self):
        broadcast_module(self.module)

    def register(self):
        for p in self.module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.start)

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def start(self, p):
        self.works.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, work in self.works:
            work.wait()
            p.grad /= dist.get_world_size()
        self.works.clear()


# %% the sum
# This is the sum over {n} ranks: divide it by the world size.
class HookedDDP(Common):
    def finish(self):
        for _, work in self.works:
            work.wait()
        self.works.clear()


# %% AVG and a division
# The sum is divided by the world size twice.
class HookedDDP(Common):
    def start(self, p):
        self.works.append((p, dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, async_op=True)))


# %% the list is never emptied | crashed
# A gradient is written to between its all_reduce and the wait: wait first, then divide. And clear in
# finish() what you keep: a Work of the last step says nothing about this step.
class HookedDDP(Common):
    def finish(self):
        for p, work in self.works:
            work.wait()
            p.grad /= dist.get_world_size()


# %% never broadcasts
# The ranks start with different weights: call `broadcast_module(module)` in __init__.
class HookedDDP(Common):
    def broadcast(self):
        pass


# %% hooks on frozen parameters too | crashed
# A frozen parameter has no gradient and takes no hook: skip it.
class HookedDDP(Common):
    def register(self):
        for p in self.module.parameters():
            p.register_post_accumulate_grad_hook(self.start)


# %% divides what nobody used | crashed
# A parameter that was not used has no gradient: in finish(), go through what the hooks have started.
class HookedDDP(Common):
    def finish(self):
        for _, work in self.works:
            work.wait()
        self.works.clear()
        for p in self.module.parameters():
            if p.requires_grad:
                p.grad /= dist.get_world_size()


# %% divides before it waits | crashed
# A gradient is written to between its all_reduce and the wait: wait first, then divide. And clear in
# finish() what you keep: a Work of the last step says nothing about this step.
class HookedDDP(Common):
    def finish(self):
        for p, work in self.works:
            p.grad /= dist.get_world_size()
            work.wait()
        self.works.clear()


# %% the mean of a copy is dropped
# `p.grad` is still the rank's own gradient: reduce `p.grad` itself, or copy the mean back into it in
# finish().
class HookedDDP(Common):
    def start(self, p):
        self.works.append((p, dist.all_reduce(p.grad.clone(), async_op=True)))

    def finish(self):
        for _, work in self.works:
            work.wait()
        self.works.clear()


# %% the buffers are no longer broadcast
# The buffers differ at the end: keep the broadcast of the buffers in forward().
class HookedDDP(Common):
    def forward(self, *inputs):
        return self.module(*inputs)


# %% hooks on the layers' last loop variable | crashed
# `p.grad` is None here. A hook gets its parameter as an argument: use that one. A lambda or function made
# in a loop sees the loop's last `p`.
class HookedDDP(Common):
    def register(self):
        trained = [p for p in self.module.parameters() if p.requires_grad]
        for p in reversed(trained):
            p.register_post_accumulate_grad_hook(lambda _: self.start(p))


# %% only rank 0's hooks start anything | deadlocked
# Only some ranks start an all_reduce: every rank must make the same calls in the same order.
class HookedDDP(Common):
    def start(self, p):
        if dist.get_rank() == 0:
            super().start(p)


# %% a hook on the gradient, before it is accumulated
# This reduces the argument of `register_hook`: autograd goes on with that tensor and accumulates it into
# `p.grad` before the all_reduce has ended. Use `register_post_accumulate_grad_hook`, and reduce `p.grad`.
class HookedDDP(Common):
    def register(self):
        for p in self.module.parameters():
            if p.requires_grad:
                p.register_hook(self.start)

    def start(self, grad):
        self.works.append((grad, dist.all_reduce(grad, async_op=True)))

    def finish(self):
        for grad, work in self.works:
            work.wait()
            grad /= dist.get_world_size()
        self.works.clear()
