from torch.nn.functional import linear, scaled_dot_product_attention


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


# %% not causal
# A token may look at itself and those before it: is_causal=True.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% one large head
# Each head attends by itself: (batch, time, heads * head_size), then unflatten(-1, (-1, head_size)) and
# transpose(1, 2), attention, then back: transpose(1, 2) and flatten(2).
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (linear(x, w) for w in (query, key, value))
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed, out))


# %% attention over heads instead of time
# Each head attends by itself: (batch, time, heads * head_size), then unflatten(-1, (-1, head_size)) and
# transpose(1, 2), attention, then back: transpose(1, 2) and flatten(2).
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (linear(x, w).unflatten(-1, (-1, head_size)) for w in (query, key, value))
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.flatten(2), out))


# %% a view that cannot be | crashed
# Ranks may have different numbers of heads: take them from the weights, by unflatten(-1, (-1,
# head_size)). After transpose, `flatten` and `reshape` work, `view` does not.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    b, t, _ = x.shape
    q, k, v = (linear(x, w).view(b, t, 2, -1).transpose(1, 2) for w in (query, key, value))
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).view(b, t, 2 * head_size), out))


# %% the sum goes behind autograd's back
# Sums that need a gradient belong in `SumOverRanks.apply(...)`: of a call behind its back (`.data`,
# `.detach()`, `no_grad`) autograd knows nothing.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    total = linear(mixed.transpose(1, 2).flatten(2), out)
    dist.all_reduce(total.data)
    return total
