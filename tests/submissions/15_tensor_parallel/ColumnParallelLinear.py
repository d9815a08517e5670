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


# %% right: as in the hints
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().chunk(world_size)[rank].clone())
        self.bias = None
        if dense.bias is not None:
            self.bias = Parameter(dense.bias.detach().chunk(world_size)[rank].clone())

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


# %% right: a subclass of Linear, setup_context
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        total = grad * 1
        dist.all_reduce(total)
        return total


class ColumnParallelLinear(Linear):
    def __init__(self, dense: Linear) -> None:
        n = dense.out_features // dist.get_world_size()
        own = slice(dist.get_rank() * n, (dist.get_rank() + 1) * n)
        super().__init__(dense.in_features, n, dense.bias is not None, dtype=dense.weight.dtype)
        with torch.no_grad():
            self.weight.copy_(dense.weight[own])
            if self.bias is not None:
                self.bias.copy_(dense.bias[own])

    def forward(self, x):
        return super().forward(CopyToRanks.apply(x))


# %% right: products by hand, async_op and wait, register_parameter
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, *grads):
        total = grads[0].contiguous().clone()
        work = dist.all_reduce(total, op=dist.ReduceOp.SUM, async_op=True)
        work.wait()
        return total


class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        r, p = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(torch.tensor_split(dense.weight, p)[r].detach().clone())
        cut = None if dense.bias is None else Parameter(dense.bias.tensor_split(p)[r].clone())
        self.register_parameter("bias", cut)

    def forward(self, x):
        y = CopyToRanks.apply(x) @ self.weight.T
        return y if self.bias is None else y + self.bias


# %% right: a hook in the place of a function
class ColumnParallelLinear(Base):
    def forward(self, x):
        if x.requires_grad:
            x = x.view_as(x)
            x.register_hook(self.sum)
        return linear(x, self.weight, self.bias)

    def sum(self, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


# %% wrong: nothing happens in backward | wrong | says: Each rank knows only what its own columns say
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


class ColumnParallelLinear(Base):
    pass


# %% wrong: forgets to apply it | wrong | says: CopyToRanks.apply\(x\)
class ColumnParallelLinear(Base):
    def forward(self, x):
        return linear(x, self.weight, self.bias)


# %% wrong: sums in forward and copies in backward | wrong | says: hands x on as it is
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


# %% wrong: the mean of the gradients | wrong | says: This is the mean
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


# %% wrong: cuts the columns of the weight | wrong | says: one row for each output
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().chunk(world_size, dim=1)[rank].clone())

    def forward(self, x):
        n = self.weight.shape[1]
        own = CopyToRanks.apply(x)[..., dist.get_rank() * n : (dist.get_rank() + 1) * n]
        return linear(own, self.weight)


# %% wrong: gathers the output | wrong | says: this rank's own columns
class ColumnParallelLinear(Base):
    def forward(self, x):
        y = super().forward(x)
        parts = [torch.empty_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, y.detach())
        parts[dist.get_rank()] = y
        return torch.cat(parts, dim=-1)


# %% wrong: a view of the whole weight | wrong | says: a slice is a view
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.weight = Parameter(dense.weight.chunk(dist.get_world_size())[dist.get_rank()])


# %% wrong: the weight is cut anew in each forward | wrong | says: one row for each output
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        self.weight, self.bias = dense.weight, dense.bias

    def forward(self, x):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        bias = None if self.bias is None else self.bias.chunk(world_size)[rank]
        return linear(CopyToRanks.apply(x), self.weight.chunk(world_size)[rank], bias)


# %% wrong: strided rows | wrong | says: block r of the rows
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach()[rank::world_size].clone())


# %% wrong: the bias stays whole | crashed | says: cut the bias as you cut the rows
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        self.bias = Parameter(dense.bias.detach().clone())


# %% wrong: forgets that there may be no bias | crashed | says: the dense layer's bias is None
class ColumnParallelLinear(Base):
    def __init__(self, dense):
        super().__init__(dense)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.bias = Parameter(dense.bias.chunk(world_size)[rank].detach().clone())


# %% wrong: a gradient is returned for nothing | wrong | says: The gradient must reach x
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad.clone())


class ColumnParallelLinear(Base):
    pass


# %% wrong: the loop skips rank 0 in backward | deadlocked | says: no call may depend on the rank
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


# %% wrong: a tensor that no optimizer would find | wrong | says: a torch.nn.Parameter
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = dense.weight.chunk(world_size)[rank].clone()
        self.bias = dense.bias.chunk(world_size)[rank].clone()

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


# %% wrong: the sum is written into the gradient that came | wrong | says: sum a clone
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


# %% wrong: cuts the columns of the weight, and does not transpose | crashed | says: column-parallel cuts the rows
class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.weight = Parameter(dense.weight.detach().chunk(world_size, dim=1)[rank].clone())
        self.bias = None

    def forward(self, x):
        return linear(CopyToRanks.apply(x), self.weight, self.bias)


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
