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
    function = Gathered

    def __init__(self, weight):
        super().__init__()
        self.shape = weight.shape
        self.shard = nn.Parameter(share_of(weight))

    def forward(self, x):
        return self.function.apply(x, self.shard, self.shape)


# %% autograd keeps the whole weight
# The whole weight is retained after forward. autograd keeps it if it sees `x @ weight.T`; so do
# ctx.save_for_backward(weight) and attributes. Save `x` and the shard, and gather again in backward.
class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, shape):
        ctx.size = len(shard)
        return whole(shard, shape)

    @staticmethod
    def backward(ctx, grad):
        return scatter(grad, ctx.size), None


class FullyShardedLinear(Base):
    def forward(self, x):
        return F.linear(x, Whole.apply(self.shard, self.shape))


# %% the whole weight is saved for backward
# The whole weight is retained after forward. autograd keeps it if it sees `x @ weight.T`; so do
# ctx.save_for_backward(weight) and attributes. Save `x` and the shard, and gather again in backward.
class Saved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, shape):
        weight = whole(shard, shape)
        ctx.save_for_backward(x, weight)
        ctx.size = len(shard)
        return x @ weight.T

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, scatter(grad.T @ x, ctx.size), None


class FullyShardedLinear(Base):
    function = Saved


# %% the weight is kept as an attribute and never freed
# The whole weight is retained after forward. autograd keeps it if it sees `x @ weight.T`; so do
# ctx.save_for_backward(weight) and attributes. Save `x` and the shard, and gather again in backward.
class Attribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        layer.weight = whole(shard, layer.shape)
        ctx.save_for_backward(x, shard)
        ctx.layer = layer
        return x @ layer.weight.T

    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return grad @ ctx.layer.weight, scatter(grad.T @ x, len(shard)), None


class FullyShardedLinear(Base):
    def forward(self, x):
        return Attribute.apply(x, self.shard, self)


# %% the shard is a view
# After __init__ the rank may keep only its shard. A slice is a view, which keeps the whole storage:
# `clone()` it. Of the whole weight only the shape is needed later.
class FullyShardedLinear(Base):
    def __init__(self, weight):
        super().__init__(weight)
        size, p = len(self.shard), dist.get_world_size()
        flat = F.pad(weight.flatten(), (0, size * p - weight.numel()))
        self.shard = nn.Parameter(flat.view(p, size)[dist.get_rank()])


# %% the sum of the gradients
# The gradient of the weight is the sum over the ranks: divide it by {n}, or use ReduceOp.AVG.
class Summed(Gathered):
    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        mine = scatter(grad.T @ x, len(shard), dist.ReduceOp.SUM)
        return grad @ whole(shard, ctx.shape), mine, None


class FullyShardedLinear(Base):
    function = Summed


# %% backward uses x @ grad the wrong way round
# The gradient has the right length but its elements are in the wrong place: it must have the shape of the
# weight, `grad.T @ x`, and be cut and padded as the weight was.
class Transposed(Gathered):
    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return grad @ whole(shard, ctx.shape), scatter(x.T @ grad, len(shard)), None


class FullyShardedLinear(Base):
    function = Transposed


# %% no gradient for the input
# The gradient of x is missing: it is `grad @ weight`, with the whole weight, gathered again.
class WithoutInput(Gathered):
    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return None, scatter(grad.T @ x, len(shard)), None


class FullyShardedLinear(Base):
    function = WithoutInput


# %% a plain layer
# After __init__ the rank may keep only its shard. A slice is a view, which keeps the whole storage:
# `clone()` it. Of the whole weight only the shape is needed later.
class FullyShardedLinear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight.clone())
        if dist.get_world_size() > 1:
            self.weight.register_hook(lambda g: scatter_and_gather(g))

    def forward(self, x):
        return x @ self.weight.T


def scatter_and_gather(g):
    size = -(-g.numel() // dist.get_world_size())
    return whole(scatter(g, size), g.shape)


# %% torch's own fully_shard
# Make the shard a `torch.nn.Parameter` that is an attribute of the layer, so that an optimizer finds it.
class FullyShardedLinear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        self.linear = nn.Linear(*weight.T.shape, bias=False, dtype=weight.dtype)
        self.linear.weight.data.copy_(weight)
        fully_shard(self.linear, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))

    def forward(self, x):
        return self.linear(x)


# %% the shard's gradient is a view of the whole gradient
# A whole tensor is retained after a layer's backward: the gathered weight, or the gradient of the whole
# weight. Keep only the shard's gradient; a view of a whole gradient keeps all of it.
class Viewed(Gathered):
    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        size, p, rank = len(shard), dist.get_world_size(), dist.get_rank()
        full = (grad.T @ x).flatten()
        full = F.pad(full, (0, size * p - len(full)))
        mine = full[rank * size : (rank + 1) * size]
        dist.reduce_scatter(mine, [c.clone() for c in full.split(size)], op=dist.ReduceOp.AVG)
        return grad @ whole(shard, ctx.shape), mine, None


class FullyShardedLinear(Base):
    function = Viewed


# %% the whole weight is kept beside a clone of the slice
# After __init__ the rank may keep only its shard. A slice is a view, which keeps the whole storage:
# `clone()` it. Of the whole weight only the shape is needed later.
class FullyShardedLinear(Base):
    def __init__(self, weight):
        super().__init__(weight)
        self.weight = weight


# %% backward returns too few values | crashed
# backward must return one value for each argument of forward after `ctx`, in their order: a gradient for a
# tensor that has one, None for anything else (a shape, a module).
class TooFew(Gathered):
    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return grad @ whole(shard, ctx.shape), scatter(grad.T @ x, len(shard))


class FullyShardedLinear(Base):
    function = TooFew


# %% the shard is no Parameter
# Make the shard a `torch.nn.Parameter` that is an attribute of the layer, so that an optimizer finds it.
class FullyShardedLinear(Base):
    def __init__(self, weight):
        super().__init__(weight)
        shard = self.shard.detach().requires_grad_()
        del self.shard
        self.shard = shard


# %% the whole weight is kept as an array
# After __init__ the rank may keep only its shard. A slice is a view, which keeps the whole storage:
# `clone()` it. Of the whole weight only the shape is needed later.
class FullyShardedLinear(Base):
    def __init__(self, weight):
        super().__init__(weight)
        self.first = weight.float().numpy().copy()


# %% the parts of the whole weight stay in a list
# The whole weight is retained after forward. autograd keeps it if it sees `x @ weight.T`; so do
# ctx.save_for_backward(weight) and attributes. Save `x` and the shard, and gather again in backward.
class FullyShardedLinear(Base):
    def forward(self, x):
        self.parts = [torch.empty_like(self.shard) for _ in range(dist.get_world_size())]
        dist.all_gather(self.parts, self.shard.detach())
        self.again = whole(self.shard.detach(), self.shape)
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


# %% computes in float32
# The result has only float32's precision: keep the dtype of `weight` and `x`.
class FullyShardedLinear(Base):
    def forward(self, x):
        return Gathered.apply(x.float(), self.shard.float(), self.shape).to(x.dtype)


# %% the gradient of x is averaged over the ranks
# The gradient of x is reduced over the ranks: it belongs to this rank's samples, so leave it as it is.
class Averaged(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad / dist.get_world_size()


class FullyShardedLinear(Base):
    def forward(self, x):
        return super().forward(Averaged.apply(x))


# %% backward writes to the shard's .grad and returns None
# The shard has no gradient after backward: return it from backward, in the place of the argument `shard`.
class Written(Gathered):
    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        shard.grad = scatter(grad.T @ x, len(shard))
        return grad @ whole(shard, ctx.shape), None, None


class FullyShardedLinear(Base):
    function = Written
