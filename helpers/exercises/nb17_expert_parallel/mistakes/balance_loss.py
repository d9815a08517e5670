# %% own losses are averaged
# Each rank's own loss was averaged over the ranks. The loss is a product: compute both factors over all
# tokens first, then multiply.
def balance_loss(logits):
    e, n = logits.shape[1], max(len(logits), 1)
    f = logits.argmax(1).bincount(minlength=e) / n
    own = e * (f * logits.softmax(1).sum(0) / n).sum()
    mean = own.detach().clone()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    return own - own.detach() + mean


# %% means of the ranks' means
# The ranks' means were averaged, so tokens of a rank with few tokens count more. Sum over all tokens, then
# divide by their number.
def balance_loss(logits):
    e, n = logits.shape[1], max(len(logits), 1)
    p = logits.softmax(1).sum(0) / n
    both = torch.stack([logits.argmax(1).bincount(minlength=e).to(p) / n, p.detach()])
    dist.all_reduce(both, op=dist.ReduceOp.AVG)
    return (
        e
        * (
            both[0] * (both[1] - p.detach() / dist.get_world_size() + p / dist.get_world_size())
        ).sum()
    )


# %% the factor is missing
# The factor is missing: the number of experts, which makes the loss 1 for even loads.
def balance_loss(logits):
    e = logits.shape[1]
    own = logits.softmax(1).sum(0)
    both = torch.stack([logits.argmax(1).bincount(minlength=e).to(own), own.detach()])
    dist.all_reduce(both)
    n = both[0].sum()
    return (both[0] / n * (both[1] - own.detach() + own) / n).sum()


# %% no gradient
# No gradient reaches the logits. It flows through this rank's own probabilities: add the other ranks' to
# `p.sum(0)` as a constant, such as `total - p.sum(0).detach()`.
def balance_loss(logits):
    e = logits.shape[1]
    own = logits.detach().softmax(1).sum(0)
    both = torch.stack([logits.argmax(1).bincount(minlength=e).to(own), own])
    dist.all_reduce(both)
    n = both[0].sum()
    return e * (both[0] / n * both[1] / n).sum()


# %% probabilities in place of counts
# Both factors are probabilities. One of them must be a count: the share of the tokens for which this expert
# is the likeliest.
def balance_loss(logits):
    e = logits.shape[1]
    own = logits.softmax(1).sum(0)
    both = torch.cat([own.detach(), torch.tensor([float(len(logits))], dtype=own.dtype)])
    dist.all_reduce(both)
    p = (both[:e] - own.detach() + own) / both[e]
    return e * (p.detach() * p).sum()


# %% a rank without tokens stays away | deadlocked
# A rank without tokens does not call all_reduce, and the others wait for it. Every rank must make the call.
def balance_loss(logits):
    e = logits.shape[1]
    if len(logits) == 0:
        return logits.sum()
    own = logits.softmax(1).sum(0)
    both = torch.stack([logits.argmax(1).bincount(minlength=e).to(own), own.detach()])
    dist.all_reduce(both)
    n = both[0].sum()
    return e * (both[0] / n * (both[1] - own.detach() + own) / n).sum()


# %% the number of this rank's tokens
# The sums over all ranks are divided by this rank's number of tokens. Divide by the number of all ranks'
# tokens, which is the sum of all counts.
def balance_loss(logits):
    n, e = logits.shape
    p = logits.softmax(1)
    counts = logits.argmax(1).bincount(minlength=e).to(logits.dtype)
    both = torch.stack([counts, p.sum(0).detach()])
    dist.all_reduce(both)
    total, n = both[1] - p.sum(0).detach() + p.sum(0), max(n, 1)
    return e * (both[0] / n * total / n).sum()
