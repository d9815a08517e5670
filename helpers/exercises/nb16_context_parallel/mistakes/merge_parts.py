# %% the mean
# This is the mean of the two outputs. Each output is weighted by its share of the sum of weights, exp(lse -
# lse of both).
def merge_parts(out_a, lse_a, out_b, lse_b):
    return (out_a + out_b) / 2, torch.logaddexp(lse_a, lse_b)


# %% added up
# This is the sum of the two outputs. Each is weighted by its share of the sum of weights, exp(lse - lse of
# both).
def merge_parts(out_a, lse_a, out_b, lse_b):
    return out_a + out_b, torch.logaddexp(lse_a, lse_b)


# %% exp overflows
# exp(lse) overflows or underflows, as an lse may be in the hundreds. Subtract the new lse first, then take
# exp; `torch.logaddexp` computes the new lse safely.
def merge_parts(out_a, lse_a, out_b, lse_b):
    a, b = lse_a.exp(), lse_b.exp()
    return (a * out_a + b * out_b) / (a + b), (a + b).log()


# %% a logarithm taken for a weight
# The outputs are weighted by lse, which is a logarithm. The weight is exp(lse).
def merge_parts(out_a, lse_a, out_b, lse_b):
    return (lse_a * out_a + lse_b * out_b) / (lse_a + lse_b), torch.logaddexp(lse_a, lse_b)


# %% lses added
# This is the sum of two logarithms. The new lse is the logarithm of exp(lse_a) + exp(lse_b).
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse_a + lse_b


# %% the larger lse
# This is the larger lse. The new lse is the logarithm of exp(lse_a) + exp(lse_b), which is larger than
# both.
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), torch.maximum(lse_a, lse_b)


# %% the shares are swapped
# The weights are swapped: out_a belongs to lse_a.
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_b * (lse_a - lse).exp() + out_a * (lse_b - lse).exp(), lse


# %% lse is detached
# The values are right, the gradients are not: both results depend on all four inputs, also on `lse_a` and
# `lse_b`. Is something detached, or computed under no_grad?
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b).detach()
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse


# %% logarithms as weights, and their sum for an lse
# The outputs are weighted by lse, which is a logarithm. The weight is exp(lse), and the new lse is
# torch.logaddexp of both.
def merge_parts(out_a, lse_a, out_b, lse_b):
    total = lse_a + lse_b
    return (lse_a * out_a + lse_b * out_b) / total, total


# %% softplus of the difference
# Where one lse is -1e30, adding it to a large number loses all digits of the result. `torch.logaddexp`
# starts from the larger of the two.
def merge_parts(out_a, lse_a, out_b, lse_b):
    share = torch.sigmoid(lse_a - lse_b)
    lse = lse_b + torch.nn.functional.softplus(lse_a - lse_b)
    return torch.lerp(out_b, out_a, share.expand_as(out_a)), lse


# %% exp of a clamped lse
# lse is clamped before exp, which changes numbers in the hundreds. Subtract the new lse first, then take
# exp; `torch.logaddexp` computes the new lse safely.
def merge_parts(out_a, lse_a, out_b, lse_b):
    a, b = (lse.clamp(-80, 80).exp() for lse in (lse_a, lse_b))
    return (a * out_a + b * out_b) / (a + b), (a + b).log()
