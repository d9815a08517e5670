# %% the mean
# This is the mean: a part counts by its sum of weights.
def merge_parts(out_a, lse_a, out_b, lse_b):
    return (out_a + out_b) / 2, torch.logaddexp(lse_a, lse_b)


# %% added up
# These are the two outputs added: each counts with its share.
def merge_parts(out_a, lse_a, out_b, lse_b):
    return out_a + out_b, torch.logaddexp(lse_a, lse_b)


# %% exp overflows
# The lse of a part may be in the hundreds, and exp of it is inf (or 0, and then a part is lost): first
# take the new lse away, then exp. `torch.logaddexp` adds two such numbers safely.
def merge_parts(out_a, lse_a, out_b, lse_b):
    a, b = lse_a.exp(), lse_b.exp()
    return (a * out_a + b * out_b) / (a + b), (a + b).log()


# %% a logarithm taken for a weight
# lse is a logarithm: a part counts with exp(lse).
def merge_parts(out_a, lse_a, out_b, lse_b):
    return (lse_a * out_a + lse_b * out_b) / (lse_a + lse_b), torch.logaddexp(lse_a, lse_b)


# %% lses added
# The sum of all weights is exp(lse_a) + exp(lse_b): lse is the logarithm of that.
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse_a + lse_b


# %% the larger lse
# The larger of the two is not their sum.
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), torch.maximum(lse_a, lse_b)


# %% the shares are swapped
# The shares are the wrong way round.
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_b * (lse_a - lse).exp() + out_a * (lse_b - lse).exp(), lse


# %% lse is detached
# The values are right, the gradients are not: both results depend on all four inputs, lse too. Is there a
# detach(), a no_grad or something written in place?
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b).detach()
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse
