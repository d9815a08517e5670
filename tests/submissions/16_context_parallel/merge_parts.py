# %% right: by logaddexp
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * torch.exp(lse_a - lse) + out_b * torch.exp(lse_b - lse), lse


# %% right: the larger is taken away first
def merge_parts(out_a, lse_a, out_b, lse_b):
    top = torch.maximum(lse_a, lse_b)
    a, b = (lse_a - top).exp(), (lse_b - top).exp()
    return (a * out_a + b * out_b) / (a + b), top + (a + b).log()


# %% right: a softmax over the two parts
def merge_parts(out_a, lse_a, out_b, lse_b):
    outs, lses = torch.stack([out_a, out_b]), torch.stack([lse_a, lse_b])
    return (outs * lses.softmax(0)).sum(0), lses.logsumexp(0)


# %% wrong: a difference that cancels where a part saw nothing | wrong | says: element .* is 0, not
def merge_parts(out_a, lse_a, out_b, lse_b):
    share = torch.sigmoid(lse_b - lse_a)
    return out_a - share * (out_a - out_b), lse_a - torch.nn.functional.logsigmoid(lse_a - lse_b)


# %% wrong: the mean | wrong | says: a part counts by its sum of weights
def merge_parts(out_a, lse_a, out_b, lse_b):
    return (out_a + out_b) / 2, torch.logaddexp(lse_a, lse_b)


# %% wrong: added up | wrong | says: each counts with its share
def merge_parts(out_a, lse_a, out_b, lse_b):
    return out_a + out_b, torch.logaddexp(lse_a, lse_b)


# %% wrong: exp overflows | wrong | says: first take the new lse away
def merge_parts(out_a, lse_a, out_b, lse_b):
    a, b = lse_a.exp(), lse_b.exp()
    return (a * out_a + b * out_b) / (a + b), (a + b).log()


# %% wrong: a logarithm taken for a weight | wrong | says: a part counts with exp
def merge_parts(out_a, lse_a, out_b, lse_b):
    return (lse_a * out_a + lse_b * out_b) / (lse_a + lse_b), torch.logaddexp(lse_a, lse_b)


# %% wrong: lses added | wrong | says: lse is the logarithm of that
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse_a + lse_b


# %% wrong: the larger lse | wrong | says: is not their sum
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), torch.maximum(lse_a, lse_b)


# %% wrong: the shares are swapped | wrong | says: the wrong way round
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_b * (lse_a - lse).exp() + out_a * (lse_b - lse).exp(), lse


# %% wrong: only the output comes back | wrong | says: not a pair of tensors
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp()


# %% wrong: the last dimension of lse is lost | wrong | says: its shape is
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse.squeeze(-1)


# %% wrong: lse is detached | wrong | says: The values are right, the gradients are not
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b).detach()
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse
