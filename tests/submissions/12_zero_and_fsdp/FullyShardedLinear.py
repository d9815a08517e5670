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


# %% right: one autograd function, a flat shard
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


class FullyShardedLinear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.shape = weight.shape
        self.shard = nn.Parameter(share_of(weight))

    def forward(self, x):
        return Gathered.apply(x, self.shard, self.shape)


# %% right: rows, as fully_shard deals them, recomputed by torch's checkpoint
from torch.utils.checkpoint import checkpoint


class GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, count):
        out = rows.new_empty(len(rows) * dist.get_world_size(), rows.shape[1])
        dist.all_gather_single(out, rows.contiguous())
        return out[:count]

    @staticmethod
    def backward(ctx, grad):
        p = dist.get_world_size()
        size = -(-len(grad) // p)
        padded = F.pad(grad, (0, 0, 0, size * p - len(grad)))
        mine = padded.new_empty(size, grad.shape[1])
        dist.reduce_scatter(mine, [c.contiguous() for c in padded.split(size)])
        return mine / p, None


class FullyShardedLinear(torch.nn.Module):
    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.out, p = weight.shape[0], dist.get_world_size()
        size = -(-self.out // p)
        rows = torch.zeros(size, weight.shape[1], dtype=weight.dtype)
        mine = weight[dist.get_rank() * size : (dist.get_rank() + 1) * size]
        rows[: len(mine)] = mine
        self.rows = torch.nn.Parameter(rows)

    def _run(self, x):
        return F.linear(x, GatherRows.apply(self.rows, self.out))

    def forward(self, x):
        return checkpoint(self._run, x, use_reentrant=False)


# %% right: what autograd saves is packed as nothing and gathered again when unpacked
class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, shape):
        ctx.size = len(shard)
        return whole(shard, shape)

    @staticmethod
    def backward(ctx, grad):
        return scatter(grad, ctx.size), None


class FullyShardedLinear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.shape = tuple(weight.shape)
        self.register_parameter("shard", nn.Parameter(share_of(weight)))

    def forward(self, x):
        weight = Whole.apply(self.shard, self.shape)
        address = weight.untyped_storage().data_ptr()

        def pack(t):
            if t.untyped_storage().data_ptr() == address:
                return t.stride()
            return t

        def unpack(t):
            if isinstance(t, torch.Tensor):
                return t
            again = whole(self.shard.detach(), self.shape)
            return again if t == again.stride() else again.T

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return x @ weight.T


# %% right: the storage is emptied after forward and filled again in backward, as FSDP does
class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, shape):
        weight = whole(shard, shape)
        out = x @ weight.T
        weight.untyped_storage().resize_(0)
        ctx.save_for_backward(x, shard)
        ctx.weight = weight
        return out

    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        n = ctx.weight.numel()
        ctx.weight.untyped_storage().resize_(len(shard) * len(parts) * shard.element_size())
        ctx.weight.data.copy_(torch.cat(parts)[:n].view_as(ctx.weight))
        dx = grad @ ctx.weight
        ctx.weight.untyped_storage().resize_(0)
        return dx, scatter(grad.T @ x, len(shard)), None


class FullyShardedLinear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.shape = weight.shape
        self.shard = nn.Parameter(share_of(weight))

    def forward(self, x):
        return Gathered.apply(x, self.shard, self.shape)


# %% wrong: all_reduce, then a slice | forbidden call | says: all_reduce
class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, shape):
        ctx.save_for_backward(x, shard)
        ctx.shape = shape
        return x @ whole(shard, shape).T

    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        full = grad.T @ x
        dist.all_reduce(full, op=dist.ReduceOp.AVG)
        return grad @ whole(shard, ctx.shape), share_of(full), None


class FullyShardedLinear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.shape = weight.shape
        self.shard = nn.Parameter(share_of(weight))

    def forward(self, x):
        return Gathered.apply(x, self.shard, self.shape)


# %% wrong: the gradient is not scattered but cut | wrong | says: calls reduce_scatter 0 times|element
class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, shape):
        ctx.save_for_backward(x, shard)
        ctx.shape = shape
        return x @ whole(shard, shape).T

    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return grad @ whole(shard, ctx.shape), share_of(grad.T @ x), None


class FullyShardedLinear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.shape = weight.shape
        self.shard = nn.Parameter(share_of(weight))

    def forward(self, x):
        return Gathered.apply(x, self.shard, self.shape)


# %% wrong: gathers in every product | wrong | says: once in forward and once in backward
class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, shape):
        ctx.save_for_backward(x, shard)
        ctx.shape = shape
        return torch.cat([x @ whole(shard, shape)[k : k + 1].T for k in range(shape[0])], 1)

    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return grad @ whole(shard, ctx.shape), scatter(grad.T @ x, len(shard)), None


class FullyShardedLinear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.shape = weight.shape
        self.shard = nn.Parameter(share_of(weight))

    def forward(self, x):
        return Gathered.apply(x, self.shard, self.shape)


# %% wrong: no gradient for the shard | wrong | says: calls reduce_scatter 0 times
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


class Forgets(Gathered):
    @staticmethod
    def backward(ctx, grad):
        x, shard = ctx.saved_tensors
        return grad @ whole(shard, ctx.shape), None, None


class FullyShardedLinear(Base):
    def forward(self, x):
        return Forgets.apply(x, self.shard, self.shape)
