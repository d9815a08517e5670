from torch.nn import Linear, Parameter
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
# This is the mean. What a rank knows of x's gradient is one summand: add up, and divide by nothing.
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
# `dense.weight` has one row for each output: rank r keeps block r of the rows and no other.
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
# Keep copies of the layer's own parts, `.detach().clone()` each, and nothing else of the dense layer: a
# slice is a view, and keeps the whole weight in memory.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.weight = Parameter(dense.weight.chunk(dist.get_world_size())[dist.get_rank()])


# %% the weight is cut anew in each forward
# `dense.weight` has one row for each output: rank r keeps block r of the rows and no other.
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        self.weight, self.bias = dense.weight, dense.bias

    def forward(self, x):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        bias = None if self.bias is None else self.bias.chunk(world_size)[rank]
        return linear(CopyToRanks.apply(x), self.weight.chunk(world_size)[rank], bias)


# %% strided rows
# Rank r keeps block r of the rows, in order: `dense.weight.chunk(world_size)[rank]`.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach()[rank::world_size].clone())


# %% the bias stays whole | crashed
# One bias for each output of this rank: cut the bias as you cut the rows of the weight.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.bias = Parameter(dense.bias.detach().clone())


# %% forgets that there may be no bias | crashed
# With `bias=False` the dense layer's bias is None: then `self.bias` is None too.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.bias = Parameter(dense.bias.chunk(world_size)[rank].detach().clone())


# %% a gradient is returned for nothing
# The gradient must reach x: CopyToRanks.backward returns one gradient for its one input.
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
# Every rank must make the same calls in the same order, forward and backward: no call may depend on the
# rank.
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
# Make `self.weight` (and `self.bias`, or None) a torch.nn.Parameter.
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = dense.weight.chunk(world_size)[rank].clone()
        self.bias = dense.bias.chunk(world_size)[rank].clone()

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


# %% the sum is written into the gradient that came
# `all_reduce` writes into its tensor, and autograd may have kept that for others: sum a clone.
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
# `dense.weight` has one row for each output: column-parallel cuts the rows, dimension 0, and x is
# multiplied by the transpose, as `linear` does.
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().chunk(world_size, dim=1)[rank].clone())
        self.bias = None

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


# %% the whole layer hides in a closure
# Keep copies of the layer's own parts, `.detach().clone()` each, and nothing else of the dense layer: a
# slice is a view, and keeps the whole weight in memory.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.whole = lambda: dense.weight


# %% a view of a copy of the whole weight
# Keep copies of the layer's own parts, `.detach().clone()` each, and nothing else of the dense layer: a
# slice is a view, and keeps the whole weight in memory.
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().clone().chunk(world_size)[rank])
        self.all_columns = dense.weight.detach().repeat(9, 1)
