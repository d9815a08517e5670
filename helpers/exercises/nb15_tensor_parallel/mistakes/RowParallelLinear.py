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
# The bias is added on every rank before the sum, so the output contains it {n} times. Add it once, after
# the sum.
class RowParallelLinear(Base):
    def forward(self, x):
        return SumOverRanks.apply(linear(x, self.weight, self.bias))


# %% the bias divided before the sum
# The output is right, but the bias gets a gradient divided by {n}: it was divided before the sum. Add the
# whole bias after the sum.
class RowParallelLinear(Base):
    def forward(self, x):
        bias = None if self.bias is None else self.bias / dist.get_world_size()
        return SumOverRanks.apply(linear(x, self.weight, bias))


# %% the bias on rank 0 alone
# The bias is added on rank 0 only, so on the other ranks it gets no gradient and the copies drift apart.
# Let every rank add it after the sum.
class RowParallelLinear(Base):
    def forward(self, x):
        bias = self.bias if dist.get_rank() == 0 else None
        return SumOverRanks.apply(linear(x, self.weight, bias))


# %% all_reduce without a function of its own
# The output of this all_reduce is used as if autograd knew the call, which it does not. Sum with
# `SumOverRanks.apply(...)`.
class RowParallelLinear(Base):
    def forward(self, x):
        total = linear(x, self.weight)
        dist.all_reduce(total)
        return total if self.bias is None else total + self.bias


# %% the mean
# This is the mean of the ranks' products. The output is their sum: do not divide by the number of ranks.
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
# x does not fit the weight: x has this rank's columns of the input already, so the weight needs as many
# columns, `dense.weight.chunk(world_size, dim=1)[rank]`.
class RowParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().tensor_split(world_size)[rank].clone())


# %% a new tensor without a graph
# The product is detached before it is summed, so no gradient reaches x or the weight. Sum with
# `SumOverRanks.apply(...)`, which autograd can go back through.
class RowParallelLinear(Base):
    def forward(self, x):
        total = linear(x, self.weight).detach()
        dist.all_reduce(total)
        return total if self.bias is None else total + self.bias


# %% the sum is written into the tensor that came
# SumOverRanks.forward writes the sum into its own input, which autograd may still need. Call all_reduce on
# a clone.
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
# SumOverRanks.forward writes the sum into its own input, which autograd may still need. Call all_reduce on
# a clone.
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
# `bias` is the dense layer's own Parameter, so the two layers share it. Keep a copy: `.detach().clone()`.
class RowParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.bias = dense.bias


# %% the sum goes behind autograd's back
# This sum bypasses autograd (`.data`, `.detach()` or `no_grad`), so it happens to work here and would be
# missed elsewhere. Sum with `SumOverRanks.apply(...)`.
class RowParallelLinear(Base):
    def forward(self, x):
        total = linear(x, self.weight)
        dist.all_reduce(total.data)
        return total if self.bias is None else total + self.bias


# %% cuts the input, which is cut already | crashed
# x does not fit the weight: x has this rank's columns of the input already, so the weight needs as many
# columns, `dense.weight.chunk(world_size, dim=1)[rank]`, and x is used whole.
class RowParallelLinear(Base):
    def forward(self, x):
        own = x.chunk(dist.get_world_size(), dim=-1)[dist.get_rank()]
        return SumOverRanks.apply(linear(own, self.weight))


# %% gathers the input and multiplies the whole
# The whole weight is kept, and the input is gathered. Keep this rank's columns of the weight, multiply them
# by this rank's x, and sum the products.
class RowParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        self.weight, self.bias = dense.weight, dense.bias

    def forward(self, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.detach())
        parts[dist.get_rank()] = x
        return linear(torch.cat(parts, dim=-1), self.weight, self.bias)
