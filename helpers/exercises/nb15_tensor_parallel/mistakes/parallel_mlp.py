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


# %% only gate reads the copy
# The gradient of x is incomplete: `gate` or `up` reads x itself. Apply CopyToRanks to x once, and let both
# read the result.
def parallel_mlp(x, gate, up, down):
    hidden = silu(linear(CopyToRanks.apply(x), gate)) * linear(x, up)
    return SumOverRanks.apply(linear(hidden, down))


# %% gate and up change places
# silu is applied to `up`, not to `gate`. The MLP is down(silu(gate(x)) * up(x)).
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = linear(x, gate) * silu(linear(x, up))
    return SumOverRanks.apply(linear(hidden, down))


# %% sums the hidden elements | deadlocked
# The hidden elements are handed to all_reduce. Each rank has its own hidden elements, in different numbers:
# only the output of `down` is summed.
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    g, u = SumOverRanks.apply(linear(x, gate)), SumOverRanks.apply(linear(x, up))
    return SumOverRanks.apply(linear(silu(g) * u, down))


# %% the sum goes behind autograd's back
# This sum bypasses autograd (`.data`, `.detach()` or `no_grad`). Sum with `SumOverRanks.apply(...)`.
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    total = linear(hidden, down)
    dist.all_reduce(total.data)
    return total


# %% CopyToRanks at the end
# The gradient of x is wrong: CopyToRanks is applied to the output, whose gradient is complete on every
# rank. Apply it to x, before `gate` and `up` read it.
def parallel_mlp(x, gate, up, down):
    y = linear(silu(linear(x, gate)) * linear(x, up), down)
    return CopyToRanks.apply(SumOverRanks.apply(y))


# %% only up reads the copy
# The gradient of x is incomplete: `gate` or `up` reads x itself. Apply CopyToRanks to x once, and let both
# read the result.
def parallel_mlp(x, gate, up, down):
    hidden = silu(linear(x, gate)) * linear(CopyToRanks.apply(x), up)
    return SumOverRanks.apply(linear(hidden, down))


# %% sums the product of the hidden elements | deadlocked
# The hidden elements are handed to all_reduce. Each rank has its own hidden elements, in different numbers:
# only the output of `down` is summed.
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = SumOverRanks.apply(silu(linear(x, gate)) * linear(x, up))
    return SumOverRanks.apply(linear(hidden, down))


# %% silu is forgotten
# silu is missing: the MLP is down(silu(gate(x)) * up(x)).
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    return SumOverRanks.apply(linear(linear(x, gate) * linear(x, up), down))


# %% up is forgotten
# The product with `up` is missing: the MLP is down(silu(gate(x)) * up(x)).
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    return SumOverRanks.apply(linear(silu(linear(x, gate)) + 0 * linear(x, up), down))
