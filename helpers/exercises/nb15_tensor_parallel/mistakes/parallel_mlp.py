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
# Each rank knows only its own part of x's gradient: let all that reads x read `CopyToRanks.apply(x)`,
# applied once.
def parallel_mlp(x, gate, up, down):
    hidden = silu(linear(CopyToRanks.apply(x), gate)) * linear(x, up)
    return SumOverRanks.apply(linear(hidden, down))


# %% gate and up change places
# silu belongs around gate, not around up: down(silu(gate(x)) * up(x)).
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = linear(x, gate) * silu(linear(x, up))
    return SumOverRanks.apply(linear(hidden, down))


# %% sums the hidden elements | deadlocked
# Calls that met had tensors of different sizes. What is summed must have the same shape on all ranks.
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    g, u = SumOverRanks.apply(linear(x, gate)), SumOverRanks.apply(linear(x, up))
    return SumOverRanks.apply(linear(silu(g) * u, down))


# %% the sum goes behind autograd's back
# Sums that need a gradient belong in `SumOverRanks.apply(...)`: of a call behind its back (`.data`,
# `.detach()`, `no_grad`) autograd knows nothing.
def parallel_mlp(x, gate, up, down):
    x = CopyToRanks.apply(x)
    hidden = silu(linear(x, gate)) * linear(x, up)
    total = linear(hidden, down)
    dist.all_reduce(total.data)
    return total
