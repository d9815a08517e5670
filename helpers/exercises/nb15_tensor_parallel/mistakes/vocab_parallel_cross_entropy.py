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
# exp of a logit in the thousands is too large or too small a number: subtract m, the largest logit of all
# ranks, before exp.
def vocab_parallel_cross_entropy(logits, target, first):
    s = SumOverRanks.apply(logits.exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() - t).mean()


# %% each rank its own maximum
# m must be the largest logit of all ranks, not the rank's own: the sums were taken with different m.
def vocab_parallel_cross_entropy(logits, target, first):
    m = logits.detach().amax(1)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()


# %% the sum over tokens
# Return the mean over the tokens, as cross_entropy does.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).sum()


# %% forgets whose target it is | crashed
# On most ranks the target is another rank's word: `own = (target >= first) & (target < first +
# logits.shape[1])`, then clamp the index and put 0 where it is not own.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(logits[torch.arange(len(target)), target - first])
    return (s.log() + m - t).mean()


# %% clamps, and forgets the zero
# Where the target is another rank's word, a rank has nothing to add to t: put 0 there, not the logit of
# the word at the edge.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    index = (target - first).clamp(0, logits.shape[1] - 1)
    t = SumOverRanks.apply(logits.gather(1, index[:, None])[:, 0])
    return (s.log() + m - t).mean()


# %% sums without autograd
# `dist.all_reduce` on a tensor that autograd watches is unknown to it, and torch says that the gradient
# may silently be wrong. Let CopyToRanks and SumOverRanks communicate, by `.apply(...)`; a maximum that
# needs no gradient comes from `logits.detach()`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = (logits - m[:, None]).exp().sum(1)
    dist.all_reduce(s)
    t = of_target(logits, target, first)
    dist.all_reduce(t)
    return (s.log() + m - t).mean()


# %% the maximum is not detached
# `dist.all_reduce` on a tensor that autograd watches is unknown to it, and torch says that the gradient
# may silently be wrong. Let CopyToRanks and SumOverRanks communicate, by `.apply(...)`; a maximum that
# needs no gradient comes from `logits.detach()`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = logits.amax(1)
    dist.all_reduce(m, op=dist.ReduceOp.MAX)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()


# %% a number
# Return the loss itself, a tensor without dimensions: backward begins there.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean().item()


# %% writes into the logits | crashed
# Work on a copy: `logits - m[:, None]`, not `logits -= ...`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    logits -= m[:, None]
    s = SumOverRanks.apply(logits.exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() - t).mean()


# %% writes into the logits behind autograd's back
# Work on a copy: `logits - m[:, None]`, not `logits -= ...`.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    logits.data -= m[:, None]
    s = SumOverRanks.apply(logits.exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() - t).mean()


# %% the maximum begins at 0
# All logits may be negative: a maximum that begins at 0 is none of them.
def vocab_parallel_cross_entropy(logits, target, first):
    m = torch.zeros(len(logits), dtype=logits.dtype).maximum(logits.detach().amax(1))
    dist.all_reduce(m, op=dist.ReduceOp.MAX)
    s = SumOverRanks.apply((logits - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()


# %% sums without autograd's knowledge
# Sums that need a gradient belong in `SumOverRanks.apply(...)`: of a call behind its back (`.data`,
# `.detach()`, `no_grad`) autograd knows nothing.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = (logits - m[:, None]).exp().sum(1)
    dist.all_reduce(s.data)
    t = of_target(logits, target, first)
    dist.all_reduce(t.data)
    return (s.log() + m - t).mean()


# %% the sum has no gradient
# The gradient is softmax minus one-hot, divided by the number of tokens: both s and t, as sums of the own
# logits, go through SumOverRanks.
def vocab_parallel_cross_entropy(logits, target, first):
    m = largest(logits)
    s = SumOverRanks.apply((logits.detach() - m[:, None]).exp().sum(1))
    t = SumOverRanks.apply(of_target(logits, target, first))
    return (s.log() + m - t).mean()
