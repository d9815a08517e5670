from torch.nn.functional import pad
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Base:
    def __init__(self, params, optimizer_class, **options):
        self.params, self.p = params, dist.get_world_size()
        flat = parameters_to_vector(params).detach()
        self.count, self.size = len(flat), -(-len(flat) // self.p)
        self.shard = torch.nn.Parameter(self.cut(flat).clone())
        self.inner = optimizer_class([self.shard], **options)

    def cut(self, flat):
        rank = dist.get_rank()
        return pad(flat, (0, self.size * self.p - self.count))[rank * self.size :][: self.size]

    def gradients(self):
        return torch.cat([q.grad.flatten() for q in self.params])

    def hand_out(self):
        whole = self.shard.new_empty(self.size * self.p)
        dist.all_gather_single(whole, self.shard.detach())
        vector_to_parameters(whole[: self.count], self.params)

    def step(self):
        self.shard.grad = self.cut(self.gradients()).clone()
        self.inner.step()
        self.shard.grad = None
        self.hand_out()


# %% wrong: gathers before the step | wrong | says: one step late


# %% wrong: the learning rate alone is handed on | wrong | says: This is without `[a-z]+[a-z_]*`: hand all options on


# %% wrong: the flat gradients stay in an attribute | wrong | says: bytes has as many elements as all weights or all gradients


# %% right: a Work that is waited for, the shard's gradient stays until the next step
class ShardedOptimizer(Base):
    def step(self):
        self.shard.grad = self.cut(self.gradients()).clone()
        self.inner.step()
        parts = [torch.empty_like(self.shard) for _ in range(self.p)]
        dist.all_gather(parts, self.shard.detach(), async_op=True).wait()
        at, flat = 0, torch.cat(parts)
        with torch.no_grad():
            for q in self.params:
                q.copy_(flat[at : at + q.numel()].view_as(q))
                at += q.numel()


# %% wrong: the weights are kept whole as an array | wrong | says: of numbers in arrays, lists or bytes
class ShardedOptimizer(Base):
    def step(self):
        super().step()
        self.last = parameters_to_vector(self.params).detach().float().numpy().copy()


# %% wrong: the weights are kept whole as a list | wrong | says: of numbers in arrays, lists or bytes
class ShardedOptimizer(Base):
    def step(self):
        super().step()
        self.last = parameters_to_vector(self.params).tolist()


# %% wrong: a closure keeps the flat gradients | wrong | says: Something whole outlives step
class ShardedOptimizer(Base):
    def step(self):
        grads = self.gradients()
        self.norm = lambda: grads.norm()
        super().step()


# %% wrong: all in float32 | wrong | says: the numbers that float32 gives
class ShardedOptimizer(Base):
    def __init__(self, params, optimizer_class, **options):
        super().__init__(params, optimizer_class, **options)
        self.shard = torch.nn.Parameter(self.shard.detach().float())
        self.inner = optimizer_class([self.shard], **options)

    def gradients(self):
        return super().gradients().float()

    def hand_out(self):
        whole = self.shard.new_empty(self.size * self.p)
        dist.all_gather_single(whole, self.shard.detach())
        vector_to_parameters(whole[: self.count].to(self.params[0].dtype), self.params)


# %% wrong: the shard's gradients add up | wrong | says: gradients of all steps add up
class ShardedOptimizer(Base):
    def step(self):
        before = 0 if self.shard.grad is None else self.shard.grad
        self.shard.grad = self.cut(self.gradients()) + before
        self.inner.step()
        self.hand_out()


# %% wrong: the gather is not waited for | wrong | says: never calls wait
class ShardedOptimizer(Base):
    def hand_out(self):
        parts = [torch.empty_like(self.shard) for _ in range(self.p)]
        dist.all_gather(parts, self.shard.detach(), async_op=True)
        vector_to_parameters(torch.cat(parts)[: self.count], self.params)
