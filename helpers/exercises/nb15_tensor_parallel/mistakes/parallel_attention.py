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
# This attention is not causal: a token may attend to itself and to earlier tokens only. Set is_causal=True.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% one large head
# This is one large head: all rows of a rank attend together. Split them into heads first: unflatten(-1,
# (-1, head_size)), then transpose(1, 2).
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (linear(x, w) for w in (query, key, value))
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed, out))


# %% attention over heads instead of time
# Attention ran over the heads of a token instead of over time. It expects (batch, heads, time, head_size):
# is transpose(1, 2) missing?
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (linear(x, w).unflatten(-1, (-1, head_size)) for w in (query, key, value))
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.flatten(2), out))


# %% a view that cannot be | crashed
# This `view` does not fit. Ranks may have different numbers of heads: derive the number from the weights,
# with unflatten(-1, (-1, head_size)). After transpose use `flatten` or `reshape`, not `view`.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    b, t, _ = x.shape
    q, k, v = (linear(x, w).view(b, t, 2, -1).transpose(1, 2) for w in (query, key, value))
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).view(b, t, 2 * head_size), out))


# %% the sum goes behind autograd's back
# This sum bypasses autograd (`.data`, `.detach()` or `no_grad`). Sum with `SumOverRanks.apply(...)`.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    total = linear(mixed.transpose(1, 2).flatten(2), out)
    dist.all_reduce(total.data)
    return total


# %% interleaved heads
# The rows are split into heads in the wrong order: one head has `head_size` consecutive rows. Use
# unflatten(-1, (-1, head_size)), where the number of heads comes first.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (head_size, -1)).permute(0, 3, 1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.permute(0, 2, 3, 1).flatten(2), out))


# %% scaled by all features of the rank
# The scores are divided by the root of the rank's number of rows. They belong to one head: divide by the
# root of `head_size`, as scaled_dot_product_attention does by default.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True, scale=len(query) ** -0.5)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% not scaled
# The scores are not scaled: divide them by the root of `head_size`, as scaled_dot_product_attention does by
# default.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% flattened without transposing back
# The heads are flattened before time and heads have changed places again, so tokens get elements of each
# other. Call transpose(1, 2) before flatten(2).
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    b, t, _ = x.shape
    return SumOverRanks.apply(linear(mixed.reshape(b, t, -1), out))


# %% the same number of heads everywhere | crashed
# The number of heads does not fit this rank's rows: ranks may have different numbers of heads. Derive it
# from the weights, with unflatten(-1, (-1, head_size)).
def parallel_attention(x, query, key, value, out, head_size):
    heads = x.shape[-1] // head_size // dist.get_world_size()
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% query and key change places
# Query and key have changed places: call scaled_dot_product_attention(q, k, v), in this order.
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(k, q, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))
