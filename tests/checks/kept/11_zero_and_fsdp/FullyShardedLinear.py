import torch.nn.functional as F
from torch import nn


def share_of(weight):
    n, p = weight.numel(), dist.get_world_size()
    size = -(-n // p)
    flat = F.pad(weight.flatten(), (0, size * p - n))
    return flat[dist.get_rank() * size : (dist.get_rank() + 1) * size].clone()


def whole(shard, shape):
    flat = shard.new_empty(len(shard) * dist.get_world_size())
    dist.all_gather_single(flat, shard)
    return flat[: shape[0] * shape[1]].view(shape)


def scatter(grad, size, op=dist.ReduceOp.AVG):
    mine, p = grad.new_empty(size), dist.get_world_size()
    dist.reduce_scatter_single(mine, F.pad(grad.flatten(), (0, size * p - grad.numel())), op=op)
    return mine


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, shape):
        ctx.save_for_backward(x, shard)
        ctx.shape = shape
        return x @ whole(shard, shape).T

    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return grad @ whole(shard, ctx.shape), scatter(grad.T @ x, len(shard)), None


class Base(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.shape = weight.shape
        self.shard = nn.Parameter(share_of(weight))

    def forward(self, x):
        return Gathered.apply(x, self.shard, self.shape)


# %% wrong: the sum of the gradients | wrong | says: is the sum over the ranks


# %% wrong: the gradient is not scattered but cut | wrong | says: part of the mean over all ranks


# %% wrong: the whole weight is kept beside a clone of the slice | wrong | says: whole weight is its shape


# %% wrong: torch's own fully_shard | wrong | says: Cut the weight by hand


# %% wrong: the shard is no Parameter | wrong | says: what an optimizer finds
class FullyShardedLinear(Base):
    def __init__(self, weight):
        super().__init__(weight)
        shard = self.shard.detach().requires_grad_()
        del self.shard
        self.shard = shard


# %% wrong: the whole weight is kept as an array | wrong | says: of numbers in arrays, lists or bytes
class FullyShardedLinear(Base):
    def __init__(self, weight):
        super().__init__(weight)
        self.first = weight.float().numpy().copy()


# %% wrong: the parts of the whole weight stay in a list | wrong | says: The whole weight outlives forward
class FullyShardedLinear(Base):
    def forward(self, x):
        self.parts = [torch.empty_like(self.shard) for _ in range(dist.get_world_size())]
        dist.all_gather(self.parts, self.shard.detach())
        self.again = whole(self.shard.detach(), self.shape)
        return self.run(x)

    def run(self, x):
        layer = self

        class Once(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, shard):
                ctx.save_for_backward(x, shard)
                return x @ torch.cat(layer.parts)[: layer.shape.numel()].view(layer.shape).T

            @staticmethod
            def backward(ctx, grad):
                x, shard = ctx.saved_tensors
                weight = torch.cat(layer.parts)[: layer.shape.numel()].view(layer.shape)
                return grad @ weight, scatter(grad.T @ x, len(shard))

        return Once.apply(x, self.shard)


# %% wrong: computes in float32 | wrong | says: the numbers that float32 gives
class FullyShardedLinear(Base):
    def forward(self, x):
        return Gathered.apply(x.float(), self.shard.float(), self.shape).to(x.dtype)


# %% wrong: the gradient of x is averaged over the ranks | wrong | says: this rank's samples: no communication, no division
class Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad / dist.get_world_size()


class FullyShardedLinear(Base):
    def forward(self, x):
        return super().forward(Shared.apply(x))


# %% wrong: no gradient for the shard | wrong | says: calls reduce_scatter 0 times
class Forgets(Gathered):
    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return grad @ whole(shard, ctx.shape), None, None


class FullyShardedLinear(Base):
    def forward(self, x):
        return Forgets.apply(x, self.shard, self.shape)
