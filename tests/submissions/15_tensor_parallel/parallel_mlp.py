from torch.nn.functional import linear, silu


class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


# %% right: as in the hints
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    return SumOverRanks.apply(linear(hidden, down))


# %% right: gate and up in one product
def parallel_mlp(x, gate, up, down):
    both = CopyToRanks.apply(x) @ torch.cat([gate, up]).T
    g, u = both.tensor_split(2, dim=-1)
    return SumOverRanks.apply((torch.nn.functional.silu(g) * u) @ down.T)


# %% right: the functions are not written yet
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise NotImplementedError("Exercise 15.1: A column-parallel layer")

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 15.1: A column-parallel layer")


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise NotImplementedError("Exercise 15.2: A row-parallel layer")

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 15.2: A row-parallel layer")


def parallel_mlp(x, gate, up, down):
    shared = CopyToRanks.apply(x)
    g, u = (linear(shared, w) for w in (gate, up))
    return SumOverRanks.apply(linear(g * g.sigmoid() * u, down))


# %% wrong: a copy for each product | wrong | says: Apply CopyToRanks to x once
def parallel_mlp(x, gate, up, down):
    hidden = silu(linear(CopyToRanks.apply(x), gate)) * linear(CopyToRanks.apply(x), up)
    return SumOverRanks.apply(linear(hidden, down))


# %% wrong: no copy | wrong | says: makes no call in backward
def parallel_mlp(x, gate, up, down):
    hidden = silu(linear(x, gate)) * linear(x, up)
    return SumOverRanks.apply(linear(hidden, down))


# %% wrong: no sum | wrong | says: makes no call in forward
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    return linear(hidden, down)


# %% wrong: torch's functional all_reduce | wrong | says: calls in backward
import torch.distributed._functional_collectives as funcol


def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    return funcol.all_reduce(linear(hidden, down), "sum", dist.group.WORLD)


# %% wrong: prints | wrong | says: The function prints, but returns nothing
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    print(SumOverRanks.apply(linear(hidden, down)))


# %% right: the functions are stubs in backward alone, as in the notebook
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 15.1: A column-parallel layer")


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise NotImplementedError("Exercise 15.2: A row-parallel layer")

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 15.2: A row-parallel layer")


def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    return SumOverRanks.apply(linear(hidden, down))


# %% wrong: its own CopyToRanks is wrong | wrong | says: Your own CopyToRanks is not right yet
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    return SumOverRanks.apply(linear(hidden, down))


# %% wrong: computes in float32 | wrong | says: is \S+, not \S+
def parallel_mlp(x, gate, up, down):
    shared = CopyToRanks.apply(x)
    hidden = silu(linear(shared.float(), gate.float())) * linear(shared.float(), up.float())
    return SumOverRanks.apply(linear(hidden, down.float())).to(x.dtype)
