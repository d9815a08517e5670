from torch.nn import Parameter
from torch.nn.functional import linear


class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class Base(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().chunk(world_size)[rank].clone())
        self.bias = None
        if dense.bias is not None:
            self.bias = Parameter(dense.bias.detach().chunk(world_size)[rank].clone())

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


# %% the mean of the gradients
# This is the mean of the ranks' gradients of x. Each rank knows one summand of that gradient: sum them, and
# do not divide by the number of ranks.
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total / dist.get_world_size()


class ColumnParallelLinear(Base):
    pass


# %% cuts the columns of the weight
# This layer keeps columns of `dense.weight`. The weight has one row for each output, so a column-parallel
# layer keeps rows: `dense.weight.chunk(world_size)[rank]`, and all of x.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().chunk(world_size, dim=1)[rank].clone())

    def forward(self, x):
        n = self.weight.shape[1]
        own = CopyToRanks.apply(x)[..., dist.get_rank() * n : (dist.get_rank() + 1) * n]
        return linear(own, self.weight)


# %% a view of the whole weight
# `weight` is a view of `dense.weight`, so the whole dense weight stays in memory. Keep a copy of this
# rank's rows: `.detach().clone()`.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.weight = Parameter(dense.weight.chunk(dist.get_world_size())[dist.get_rank()])


# %% the weight is cut anew in each forward
# `weight` still has all rows of the dense layer. Split it once, in `__init__`, and keep a copy of this
# rank's rows only.
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        self.weight, self.bias = dense.weight, dense.bias

    def forward(self, x):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        bias = None if self.bias is None else self.bias.chunk(world_size)[rank]
        return linear(CopyToRanks.apply(x), self.weight.chunk(world_size)[rank], bias)


# %% strided rows
# These are other rows of `dense.weight`: rank r keeps the contiguous block r,
# `dense.weight.chunk(world_size)[rank]`, not every world_size-th row.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach()[rank::world_size].clone())


# %% the bias stays whole | crashed
# This rank computes a part of the outputs, but adds the bias of all of them. Split the bias as you split
# the rows of the weight.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.bias = Parameter(dense.bias.detach().clone())


# %% forgets that there may be no bias | crashed
# With `bias=False` the dense layer's bias is None: then `self.bias` is None, too.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.bias = Parameter(dense.bias.chunk(world_size)[rank].detach().clone())


# %% a gradient is returned for nothing
# No gradient reaches x. CopyToRanks.backward must return one gradient for its one input: is there a
# `return`?
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad.clone())


class ColumnParallelLinear(Base):
    pass


# %% the loop skips rank 0 in backward | deadlocked
# Not all ranks call all_reduce in backward. Every rank must make the same calls in the same order, so no
# call may depend on the rank.
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        if dist.get_rank() > 0:
            dist.all_reduce(total)
        return total


class ColumnParallelLinear(Base):
    pass


# %% a tensor that no optimizer would find
# `weight` is a plain tensor, so `layer.parameters()` does not list it and no optimizer would update it.
# Make it a torch.nn.Parameter, and the bias likewise.
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = dense.weight.chunk(world_size)[rank].clone()
        self.bias = dense.bias.chunk(world_size)[rank].clone()

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


# %% the sum is written into the gradient that came
# The sum is written into the gradient that backward was given, and autograd may still need that tensor.
# Call all_reduce on a clone of it.
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad)
        return grad


class ColumnParallelLinear(Base):
    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


# %% cuts the columns of the weight, and does not transpose | crashed
# The rows of x do not fit the weight: this layer keeps columns of `dense.weight`. The weight has one row
# for each output, so a column-parallel layer keeps rows, `dense.weight.chunk(world_size)[rank]`.
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().chunk(world_size, dim=1)[rank].clone())
        self.bias = None

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


# %% the whole layer hides in a closure
# The layer keeps a reference to the dense layer (an attribute, or a closure), so the dense weight cannot be
# freed. Keep copies of this rank's parts only.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.whole = lambda: dense.weight


# %% a view of a copy of the whole weight
# The layer keeps more than this rank's parts: a slice of a copy of the whole weight keeps the whole copy in
# memory. Slice first, then clone.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().clone().chunk(world_size)[rank])
        if dense.bias is not None:
            self.bias = Parameter(dense.bias.detach().clone().chunk(world_size)[rank])


# %% strided rows, and a strided bias
# These are other rows of `dense.weight`: rank r keeps the contiguous block r,
# `dense.weight.chunk(world_size)[rank]`, not every world_size-th row.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach()[rank::world_size].clone())
        if dense.bias is not None:
            self.bias = Parameter(dense.bias.detach()[rank::world_size].clone())


# %% zeros where there is no bias
# The dense layer has no bias, but this layer has one, of zeros: an optimizer would train it. Set `self.bias
# = None` there.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        if self.bias is None:
            self.bias = Parameter(torch.zeros(len(self.weight), dtype=self.weight.dtype))


# %% nothing happens in backward
# The gradient of x is this rank's summand only. x must go through `CopyToRanks.apply(x)`, whose backward
# sums the gradients of all ranks and returns the sum.
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


class ColumnParallelLinear(Base):
    pass


# %% forgets to apply it
# The gradient of x is this rank's summand only. x must go through `CopyToRanks.apply(x)`, whose backward
# sums the gradients of all ranks and returns the sum.
class ColumnParallelLinear(Base):
    def forward(self, x):
        return linear(x, self.weight, self.bias)


# %% sums in forward and copies in backward
# x is summed over the ranks in forward. CopyToRanks.forward returns x as it is; only its backward sums.
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


class ColumnParallelLinear(Base):
    pass


# %% gathers the output
# The output has other ranks' columns, too. Return this rank's own columns only.
class ColumnParallelLinear(Base):
    def forward(self, x):
        y = super().forward(x)
        parts = [torch.empty_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, y.detach())
        parts[dist.get_rank()] = y
        return torch.cat(parts, dim=-1)
