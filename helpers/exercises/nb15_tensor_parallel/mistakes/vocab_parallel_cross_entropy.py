from torch.nn.functional import cross_entropy


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


def largest(logits):
    m = logits.detach().amax(1)
    dist.all_reduce(m, op=dist.ReduceOp.MAX)
    return m


def of_target(logits, target, first):
    index = (target - first).clamp(0, logits.shape[1] - 1)
    inside = (target >= first) & (target < first + logits.shape[1])
    return torch.where(inside, logits.gather(1, index[:, None])[:, 0], 0)


# %% no maximum
# exp overflows or underflows for such logits. Subtract m, the largest logit of each token over all ranks,
# before exp.
def vocab_parallel_cross_entropy(logits, target, first):
    s = SumOverRanks.apply(logits.exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() - t).mean()


# %% each rank its own maximum
# Each rank subtracted its own largest logit, so sums with different m were added. m must be the largest
# logit of all ranks: all_reduce it with ReduceOp.MAX.
def vocab_parallel_cross_entropy(logits, target, first):
    m = logits.detach().amax(1)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()


# %% the sum over tokens
# This is the sum of the tokens' losses. Return their mean, as cross_entropy does.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).sum()


# %% forgets whose target it is | crashed
# The index of the target is outside of this rank's logits: on most ranks the target is another rank's word.
# Clamp the index, and use 0 as the logit where the word is another rank's.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(logits[torch.arange(len(target)), target - first])
    return (s.log() + m - t).mean()


# %% clamps, and forgets the zero
# Where the target is another rank's word, this rank adds some logit of its own to t. Add 0 there.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    index = (target - first).clamp(0, logits.shape[1] - 1)
    t = SumOverRanks.apply(logits.gather(1, index[:, None])[:, 0])
    return (s.log() + m - t).mean()


# %% sums without autograd
# The sums are plain all_reduce calls on tensors that autograd tracks: autograd does not know the call, and
# the gradient may silently be wrong. Use `SumOverRanks.apply(...)`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = (logits - m[:, None]).exp().sum(1)
    dist.all_reduce(s)
    t = of_target(logits, target, first)
    dist.all_reduce(t)
    return (s.log() + m - t).mean()


# %% the maximum is not detached
# The maximum is computed from logits that autograd tracks. It needs no gradient: compute it from
# `logits.detach()`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = logits.amax(1)
    dist.all_reduce(m, op=dist.ReduceOp.MAX)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()


# %% a number
# This is a Python number, which backward cannot start from. Return the loss itself, a tensor without
# dimensions.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean().item()


# %% writes into the logits | crashed
# The logits are changed in place. Work on a copy: `logits - m[:, None]`, not `logits -= ...`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    logits -= m[:, None]
    s = SumOverRanks.apply(logits.exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() - t).mean()


# %% writes into the logits behind autograd's back
# The logits that were given have changed. Work on a copy: `logits - m[:, None]`, not `logits -= ...`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    logits.data -= m[:, None]
    s = SumOverRanks.apply(logits.exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() - t).mean()


# %% the maximum begins at 0
# m is never below 0 here, but all logits of a token may be far below 0, and then exp underflows. Compute m
# as the plain maximum of the logits.
def vocab_parallel_cross_entropy(logits, target, first):
    m = torch.zeros(len(logits), dtype=logits.dtype).maximum(logits.detach().amax(1))
    dist.all_reduce(m, op=dist.ReduceOp.MAX)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()


# %% sums without autograd's knowledge
# These sums bypass autograd (`.data`, `.detach()` or `no_grad`). Sums that need a gradient go through
# `SumOverRanks.apply(...)`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = (logits - m[:, None]).exp().sum(1)
    dist.all_reduce(s.data)
    t = of_target(logits, target, first)
    dist.all_reduce(t.data)
    return (s.log() + m - t).mean()


# %% the sum has no gradient
# A part of the gradient is missing: the gradient of the logits is (softmax - one_hot) / tokens. Both s and
# t must be computed from the logits themselves, not from a detached copy.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits.detach() - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()


# %% the target's logit has no gradient
# A part of the gradient is missing: the gradient of the logits is (softmax - one_hot) / tokens. Both s and
# t must be computed from the logits themselves, not from a detached copy.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits.detach(), target, first))
    return (s.log() + m - t).mean()


# %% equal parts, in the order of ranks
# This assumes equal parts of the vocabulary, in the order of ranks. Word k is this rank's if first <= k <
# first + logits.shape[1].
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    n = logits.shape[1]
    index = torch.where(target // n == dist.get_rank(), target % n, 0)
    own = logits.gather(1, index[:, None])[:, 0] * (target // n == dist.get_rank())
    t = SumOverRanks.apply(own)
    return (s.log() + m - t).mean()


# %% negative indices are not masked
# Where the target is another rank's word, this rank adds some logit of its own to t. Add 0 there.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    column = (target - first).clamp(-logits.shape[1], logits.shape[1] - 1)
    t = SumOverRanks.apply(logits[torch.arange(len(target)), column])
    return (s.log() + m - t).mean()


# %% one maximum for all tokens
# One maximum for all tokens is subtracted. A token whose logits are all far below it underflows: take the
# maximum of each token, `logits.amax(1)`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = logits.detach().max()
    dist.all_reduce(m, op=dist.ReduceOp.MAX)
    s = SumOverRanks.apply((logits - m).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()


# %% the target counted from 0
# `target` is a number in the whole vocabulary, and this rank's column 0 is word `first`: subtract `first`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    inside = (target >= 0) & (target < logits.shape[1])
    index = target.clamp(0, logits.shape[1] - 1)
    t = SumOverRanks.apply(torch.where(inside, logits.gather(1, index[:, None])[:, 0], 0))
    return (s.log() + m - t).mean()


# %% m is not added again
# m is subtracted before exp and never added again: the loss of a token is log(s) + m - t.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() - t).mean()
