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


# %% right: as in the hints
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% right: by hand, with a mask, one fused product
def parallel_attention(x, query, key, value, out, head_size):
    b, t, _ = x.shape
    fused = linear(CopyToRanks.apply(x), torch.cat([query, key, value]))
    q, k, v = (
        part.view(b, t, -1, head_size).permute(0, 2, 1, 3) for part in fused.chunk(3, dim=-1)
    )
    scores = q @ k.transpose(-1, -2) / head_size**0.5
    later = torch.ones(t, t, dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
    return SumOverRanks.apply(mixed.permute(0, 2, 1, 3).reshape(b, t, -1) @ out.T)


# %% right: head by head
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    total = 0
    for h in range(0, query.shape[0], head_size):
        q, k, v = (linear(x, w[h : h + head_size]) for w in (query, key, value))
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        total = total + linear(mixed, out[:, h : h + head_size])
    return SumOverRanks.apply(total)


# %% wrong: a copy for each of the three | wrong | says: Apply CopyToRanks to x once
def parallel_attention(x, query, key, value, out, head_size):
    q, k, v = (
        linear(CopyToRanks.apply(x), w).unflatten(-1, (-1, head_size)).transpose(1, 2)
        for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% wrong: no copy | wrong | says: makes no call in backward
def parallel_attention(x, query, key, value, out, head_size):
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% wrong: keys and values of all ranks | forbidden call | says: only all_reduce may be used
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, k.detach())
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% right: the functions are stubs in backward alone, as in the notebook
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 15.1: A column-parallel layer")


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise NotImplementedError("Exercise 15.2: A row-parallel layer")

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 15.2: A row-parallel layer")


def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% wrong: its own CopyToRanks is wrong | wrong | says: Your own CopyToRanks is not right yet
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out))


# %% wrong: computes in float32 | wrong | says: element \[\d, \d, \d\] is \S+, not \S+ \(\d+ of 20
def parallel_attention(x, query, key, value, out, head_size):
    x, given = CopyToRanks.apply(x).float(), x.dtype
    query, key, value, out = query.float(), key.float(), value.float(), out.float()
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out)).to(given)
