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


# %% wrong: a view of the whole weight | wrong | says: a slice is a view


# %% wrong: cuts the columns of the weight, and does not transpose | crashed | says: column-parallel cuts the rows


# %% wrong: makes float64 parameters, whatever the dense layer has | crashed | says: have the same dtype
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        own = torch.empty(self.weight.shape, dtype=torch.float64)
        self.weight = Parameter(own.copy_(self.weight.detach()))


# %% wrong: the sum is made in float32 | wrong | says: gradient of x: element
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.float()
        total = total.clone()
        dist.all_reduce(total)
        return total.to(grad.dtype)


class ColumnParallelLinear(Base):
    pass


# %% wrong: the whole layer hides in a closure | wrong | says: or a tensor of it, is still held
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.whole = lambda: dense.weight


# %% wrong: a view of a copy of the whole weight | wrong | says: the layer keeps .* bytes
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().clone().chunk(world_size)[rank])
        self.all_columns = dense.weight.detach().repeat(9, 1)
