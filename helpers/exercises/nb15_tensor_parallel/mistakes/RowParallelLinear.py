from torch.nn import Parameter
from torch.nn.functional import linear


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


class Base(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().chunk(world_size, dim=1)[rank].clone())
        self.bias = None if dense.bias is None else Parameter(dense.bias.detach().clone())

    def forward(self, x):
        total = SumOverRanks.apply(linear(x, self.weight))
        return total if self.bias is None else total + self.bias


# %% the bias on every rank
# The bias counts {n} times: add it once, after the sum.
class RowParallelLinear(Base):
    def forward(self, x):
        return SumOverRanks.apply(linear(x, self.weight, self.bias))


# %% the bias divided before the sum
# The bias has a divided gradient: add the whole bias, after the sum.
class RowParallelLinear(Base):
    def forward(self, x):
        bias = None if self.bias is None else self.bias / dist.get_world_size()
        return SumOverRanks.apply(linear(x, self.weight, bias))


# %% the bias on rank 0 alone
# Every rank adds the bias to the sum, so that every rank's copy gets the same gradient.
class RowParallelLinear(Base):
    def forward(self, x):
        bias = self.bias if dist.get_rank() == 0 else None
        return SumOverRanks.apply(linear(x, self.weight, bias))


# %% all_reduce without a function of its own
# `dist.all_reduce` on a tensor that autograd watches is unknown to it, and torch says that the gradient
# may silently be wrong. Let CopyToRanks and SumOverRanks communicate, by `.apply(...)`; a maximum that
# needs no gradient comes from `logits.detach()`.
class RowParallelLinear(Base):
    def forward(self, x):
        total = linear(x, self.weight)
        dist.all_reduce(total)
        return total if self.bias is None else total + self.bias


# %% the mean
# The output is the sum, not the mean, of all ranks' products.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total / dist.get_world_size()

    @staticmethod
    def backward(ctx, grad):
        return grad


class RowParallelLinear(Base):
    pass


# %% cuts the rows | crashed
# `x` holds this rank's columns of the input already: do not cut it again. The weight's part has as many
# columns: `dense.weight.chunk(world_size, dim=1)[rank]`.
class RowParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().tensor_split(world_size)[rank].clone())


# %% a new tensor without a graph
# Sums that need a gradient belong in `SumOverRanks.apply(...)`: of a call behind its back (`.data`,
# `.detach()`, `no_grad`) autograd knows nothing.
class RowParallelLinear(Base):
    def forward(self, x):
        total = linear(x, self.weight).detach()
        dist.all_reduce(total)
        return total if self.bias is None else total + self.bias


# %% the sum is written into the tensor that came
# `all_reduce` writes into its tensor, and autograd may have kept that for others: sum a clone.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class RowParallelLinear(Base):
    pass


# %% sums in the tensor that came, and says so to autograd
# `all_reduce` writes into its tensor, and autograd may have kept that for others: sum a clone.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        dist.all_reduce(x, async_op=True).wait()
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


class RowParallelLinear(Base):
    def forward(self, x):
        y = SumOverRanks.apply(linear(x, self.weight))
        return y + (0 if self.bias is None else self.bias)


# %% keeps the dense layer's own bias
# Keep copies of the layer's own parts, `.detach().clone()` each, and nothing else of the dense layer: a
# slice is a view, and keeps the whole weight in memory.
class RowParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.bias = dense.bias


# %% the sum goes behind autograd's back
# Sums that need a gradient belong in `SumOverRanks.apply(...)`: of a call behind its back (`.data`,
# `.detach()`, `no_grad`) autograd knows nothing.
class RowParallelLinear(Base):
    def forward(self, x):
        total = linear(x, self.weight)
        dist.all_reduce(total.data)
        return total if self.bias is None else total + self.bias
