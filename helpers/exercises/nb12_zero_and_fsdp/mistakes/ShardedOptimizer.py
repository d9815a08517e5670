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


# %% every rank steps everything
# Give the inner optimizer one parameter, this rank's slice of the flat weights: it makes state for what it
# is given. Whole parameters are too coarse: one may have most of the elements.
class ShardedOptimizer:
    def __init__(self, params, optimizer_class, **options):
        self.inner = optimizer_class(params, **options)

    def step(self):
        self.inner.step()


# %% nobody gathers
# This rank has stepped its own slice, but the other slices have not changed: gather all slices with
# all_gather.
class ShardedOptimizer(Base):
    def hand_out(self):
        flat = parameters_to_vector(self.params).detach()
        own = slice(dist.get_rank() * self.size, (dist.get_rank() + 1) * self.size)
        flat[own] = self.shard.data[: len(flat[own])]
        vector_to_parameters(flat, self.params)


# %% the rest is forgotten
# {count} is not a multiple of {n}, and the last elements are left out: round the share up and pad with
# zeros.
class ShardedOptimizer:
    def __init__(self, params, optimizer_class, **options):
        self.params = params
        rank, p = dist.get_rank(), dist.get_world_size()
        flat = parameters_to_vector(params).detach()
        size = len(flat) // p
        self.own = slice(rank * size, (rank + 1) * size)
        self.shard = torch.nn.Parameter(flat[self.own].clone())
        self.inner = optimizer_class([self.shard], **options)

    def step(self):
        self.shard.grad = torch.cat([q.grad.flatten() for q in self.params])[self.own].clone()
        self.inner.step()
        flat = parameters_to_vector(self.params).detach().clone()
        whole = self.shard.new_empty(len(self.shard) * dist.get_world_size())
        dist.all_gather_single(whole, self.shard.detach())
        flat[: len(whole)] = whole
        vector_to_parameters(flat, self.params)


# %% the shard is a view of the flat weights
# A copy of all weights or all gradients is retained after step(): in an attribute, in another form, or by a
# view, which keeps all of its storage. `clone()` the slice, and build whole tensors only inside step().
class ShardedOptimizer(Base):
    def __init__(self, params, optimizer_class, **options):
        super().__init__(params, optimizer_class, **options)
        self.flat = parameters_to_vector(params).detach()
        self.shard = torch.nn.Parameter(self.cut(self.flat))
        self.inner = optimizer_class([self.shard], **options)


# %% the gradients are divided again
# The gradients are divided: they are averaged already, so use them as they are.
class ShardedOptimizer(Base):
    def gradients(self):
        return super().gradients() / self.p


# %% gathers before the step
# The weights come one step late: gather after the inner optimizer's step.
class ShardedOptimizer(Base):
    def step(self):
        self.hand_out()
        self.shard.grad = self.cut(self.gradients()).clone()
        self.inner.step()


# %% shards of unequal length meet in one all_gather | crashed
# Tensors of different lengths meet in one call. Shards must be equally long on all ranks: round up, `size =
# -(-n // world_size)`, and pad with zeros, `torch.nn.functional.pad(flat, (0, size * world_size - n))`. Do
# not reduce values that belong to this rank's samples alone, such as the gradient of `x`.
class ShardedOptimizer:
    def __init__(self, params, optimizer_class, **options):
        self.params, self.p = params, dist.get_world_size()
        flat = parameters_to_vector(params).detach()
        self.own = flat.tensor_split(self.p)
        self.sizes = [len(s) for s in self.own]
        self.shard = torch.nn.Parameter(self.own[dist.get_rank()].clone())
        self.own = None
        self.inner = optimizer_class([self.shard], **options)

    def step(self):
        grads = torch.cat([q.grad.flatten() for q in self.params])
        self.shard.grad = grads.tensor_split(self.p)[dist.get_rank()].clone()
        self.inner.step()
        whole = [torch.empty(n, dtype=self.shard.dtype) for n in self.sizes]
        dist.all_gather(whole, self.shard.detach())
        vector_to_parameters(torch.cat(whole), self.params)


# %% the options are dropped
# The options are not used: pass all of them on, `optimizer_class([shard], **options)`.
class ShardedOptimizer(Base):
    def __init__(self, params, optimizer_class, **options):
        super().__init__(params, optimizer_class)


# %% the learning rate alone is handed on
# `{second}` is not used: pass all options on, `optimizer_class([shard], **options)`.
class ShardedOptimizer(Base):
    def __init__(self, params, optimizer_class, lr, **options):
        super().__init__(params, optimizer_class, lr=lr)


# %% a new inner optimizer in each step
# The inner optimizer is made again in each step, which loses its state: make it once, in __init__.
class ShardedOptimizer(Base):
    def __init__(self, params, optimizer_class, **options):
        super().__init__(params, optimizer_class, **options)
        self.make = lambda: optimizer_class([self.shard], **options)

    def step(self):
        self.inner = self.make()
        super().step()


# %% the flat gradients stay in an attribute
# A copy of all weights or all gradients is retained after step(): in an attribute, in another form, or by a
# view, which keeps all of its storage. `clone()` the slice, and build whole tensors only inside step().
class ShardedOptimizer(Base):
    def gradients(self):
        self.grads = super().gradients()
        return self.grads


# %% a float32 buffer | crashed
# Tensors of two dtypes meet. The weights need not be float32, but `torch.empty(n)` and `torch.zeros(n)`
# are: `new_empty(n)` and `new_zeros(n)` of a tensor keep its dtype.
class ShardedOptimizer(Base):
    def hand_out(self):
        whole = torch.empty(self.size * self.p)
        dist.all_gather_single(whole, self.shard.detach())
        vector_to_parameters(whole[: self.count], self.params)


# %% the weights are kept whole as an array
# A copy of all weights or all gradients is retained after step(): in an attribute, in another form, or by a
# view, which keeps all of its storage. `clone()` the slice, and build whole tensors only inside step().
class ShardedOptimizer(Base):
    def step(self):
        super().step()
        self.last = parameters_to_vector(self.params).detach().float().numpy().copy()


# %% the weights are kept whole as a list
# A copy of all weights or all gradients is retained after step(): in an attribute, in another form, or by a
# view, which keeps all of its storage. `clone()` the slice, and build whole tensors only inside step().
class ShardedOptimizer(Base):
    def step(self):
        super().step()
        self.last = parameters_to_vector(self.params).tolist()


# %% a closure keeps the flat gradients
# A copy of all weights or all gradients is retained after step(): in an attribute, in another form, or by a
# view, which keeps all of its storage. `clone()` the slice, and build whole tensors only inside step().
class ShardedOptimizer(Base):
    def step(self):
        grads = self.gradients()
        self.norm = lambda: grads.norm()
        super().step()


# %% all in float32
# The weights have only float32's precision: keep the dtype of the parameters.
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


# %% the shard's gradients add up
# The gradients of all steps add up: `shard.grad` must be this step's slice only.
class ShardedOptimizer(Base):
    def step(self):
        before = 0 if self.shard.grad is None else self.shard.grad
        self.shard.grad = self.cut(self.gradients()) + before
        self.inner.step()
        self.hand_out()


# %% an inner optimizer that is made in step() and forgotten
# The inner optimizer is made again in each step, which loses its state: make it once, in __init__.
class ShardedOptimizer(Base):
    def __init__(self, params, optimizer_class, **options):
        super().__init__(params, optimizer_class, **options)
        self.inner = None
        self.make = lambda: optimizer_class([self.shard], **options)

    def step(self):
        self.shard.grad = self.cut(self.gradients()).clone()
        self.make().step()
        self.hand_out()
