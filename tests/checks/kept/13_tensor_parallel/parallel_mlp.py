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


# %% wrong: no sum | wrong | says: the rank's own summand of the output


# %% wrong: sums the hidden elements | deadlocked | says: What is summed must have the same shape


# %% wrong: torch's functional all_reduce | wrong | says: summed where they were complete already


# %% wrong: prints | wrong | says: The function prints, but returns nothing


# %% right: the functions are stubs in backward alone, as in the notebook
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 13.1: A column-parallel layer")


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise NotImplementedError("Exercise 13.2: A row-parallel layer")

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 13.2: A row-parallel layer")


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


# %% wrong: the sum goes behind autograd's back | wrong | says: not within a function of autograd
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    total = linear(hidden, down)
    dist.all_reduce(total.data)
    return total


# %% wrong: computes in float32 | wrong | says: element
def parallel_mlp(x, gate, up, down):
    shared = CopyToRanks.apply(x)
    hidden = silu(linear(shared.float(), gate.float())) * linear(shared.float(), up.float())
    return SumOverRanks.apply(linear(hidden, down.float())).to(x.dtype)
