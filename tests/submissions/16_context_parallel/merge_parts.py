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


# %% wrong: only the output comes back | wrong | says: not a pair of tensors
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp()


# %% wrong: the last dimension of lse is lost | wrong | says: its shape is
def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse.squeeze(-1)
