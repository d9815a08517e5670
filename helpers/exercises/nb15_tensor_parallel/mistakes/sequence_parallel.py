from torch.nn.functional import linear, rms_norm, silu


def gather(x):
    whole = x.new_empty(dist.get_world_size() * len(x), *x.shape[1:])
    dist.all_gather_single(whole, x.contiguous())
    return whole


def scatter_sum(x):
    own = x.new_empty(len(x) // dist.get_world_size(), *x.shape[1:])
    dist.reduce_scatter_single(own, x.contiguous())
    return own


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


class GatherTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return gather(x)

    @staticmethod
    def backward(ctx, grad):
        return scatter_sum(grad)


class ScatterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scatter_sum(x)

    @staticmethod
    def backward(ctx, grad):
        return gather(grad)


# %% the scale's gradient is averaged
# This is the mean of the ranks' gradients of the scale. It is their sum.
def mean_of(grad):
    total = grad.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def sequence_parallel(x, scale, gate, up, down, mask):
    scale.register_hook(mean_of)
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, scale))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% backward of the sum hands on | crashed
# The sizes do not fit: x, mask and the output of scatter_sum belong to this rank's tokens, and gate and up
# read all tokens. The backward of each function undoes the change of size that its forward made.
class ScatterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scatter_sum(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% gathers before the norm
# Autograd keeps two tensors of all ranks' tokens: the norm ran after the gather, so it keeps what it reads,
# too. Apply the norm to this rank's tokens and gather the result.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = rms_norm(GatherTokens.apply(x), scale.shape, CopyToRanks.apply(scale))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% the mask before the sum | crashed
# The sizes do not fit: x, mask and the output of scatter_sum belong to this rank's tokens, and gate and up
# read all tokens. The backward of each function undoes the change of size that its forward made.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + ScatterSum.apply(mask * linear(hidden, down))


# %% silu around up
# silu is applied to `up`, not to `gate`.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = linear(tokens, gate) * silu(linear(tokens, up))
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% the mask for all of it
# The mask is applied to x, too. Only what is added to x is multiplied by the mask: x + mask * (...).
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return mask * (x + ScatterSum.apply(linear(hidden, down)))


# %% without the scale
# The norm's scale is not applied.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape) + 0 * CopyToRanks.apply(scale))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% the residual is added to every summand | crashed
# The sizes do not fit: x, mask and the output of scatter_sum belong to this rank's tokens, and gate and up
# read all tokens. The backward of each function undoes the change of size that its forward made.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return mask * ScatterSum.apply(x + linear(hidden, down))


# %% no residual
# The residual is missing: x + mask * (...).
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return mask * ScatterSum.apply(linear(hidden, down))


# %% no mask
# The mask is not applied: x + mask * (...).
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + ScatterSum.apply(linear(hidden, down))


# %% a mean
# This is the mean of the ranks' summands. The MLP's output is their sum.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down)) / dist.get_world_size()


# %% one rank goes its own way | deadlocked
# Not all ranks make the same calls. Every rank must make them in the same order, forward and backward, so
# no call may depend on the rank.
def sequence_parallel(x, scale, gate, up, down, mask):
    own = rms_norm(x, scale.shape, CopyToRanks.apply(scale))
    if dist.get_rank() == 0:
        return x + 0 * own
    tokens = GatherTokens.apply(own)
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% the gather without apply | crashed
# `gather` is called outside of an autograd function, so backward cannot go through it: call
# `GatherTokens.apply(...)`.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = gather(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% both functions' forwards by hand | crashed
# `gather` is called outside of an autograd function, so backward cannot go through it: call
# `GatherTokens.apply(...)`.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.forward(None, rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.forward(None, linear(hidden, down))


# %% the class is called | crashed
# `GatherTokens(...)` makes an object of the class. Call `GatherTokens.apply(...)`, which returns a tensor.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum(linear(hidden, down))


# %% a detached x
# Only the residual contributes to the gradient of x: nothing came back through the norm. Is something
# detached, or a gather or a sum called without `GatherTokens.apply` or `ScatterSum.apply`?
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x.detach(), scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% the residual is detached
# The gradient that x gets from the residual is missing: add x itself, not a detached copy.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x.detach() + mask * ScatterSum.apply(linear(hidden, down))


# %% x is detached everywhere
# No gradient reaches x. Either x is detached, or something on every path from x to the output is.
def sequence_parallel(x, scale, gate, up, down, mask):
    x = x.detach()
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% backward of the gather takes its slice
# GatherTokens.backward returns only this rank's slice of the gradient. All ranks read all tokens, so their
# gradients must be summed: use scatter_sum.
class GatherTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return gather(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% backward of the sum puts its own tokens among zeros
# The gradient of the other ranks' tokens is missing: ScatterSum.backward gathers the gradients of all
# tokens.
class ScatterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scatter_sum(x)

    @staticmethod
    def backward(ctx, grad):
        parts = [torch.zeros_like(grad) for _ in range(dist.get_world_size())]
        parts[dist.get_rank()] = grad
        return torch.cat(parts)


def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, CopyToRanks.apply(scale)))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% no norm
# The norm is missing: `gate` and `up` read rms_norm(x, scale.shape, scale).
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(x)
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% the scale's gradient is of the own tokens
# The gradient of the scale is that of this rank's tokens only. The norm must read
# `CopyToRanks.apply(scale)`, whose backward sums the gradients of all ranks.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = GatherTokens.apply(rms_norm(x, scale.shape, scale))
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))


# %% gathered and summed behind autograd's back
# Gathers and sums bypass autograd, so backward does not exchange gradients. Call `GatherTokens.apply(...)`
# and `ScatterSum.apply(...)`.
def sequence_parallel(x, scale, gate, up, down, mask):
    tokens = gather(rms_norm(x, scale.shape, CopyToRanks.apply(scale)).detach())
    hidden = silu(linear(tokens, gate)) * linear(tokens, up)
    return x + mask * ScatterSum.apply(linear(hidden, down))
