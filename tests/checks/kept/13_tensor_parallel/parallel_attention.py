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


# %% wrong: a view that cannot be | crashed | says: `view` does not


# %% right: the functions are stubs in backward alone, as in the notebook
class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 13.1: A column-parallel layer")


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise NotImplementedError("Exercise 13.2: A row-parallel layer")

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("Exercise 13.2: A row-parallel layer")


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


# %% wrong: the sum goes behind autograd's back | wrong | says: not within a function of autograd
def parallel_attention(x, query, key, value, out, head_size):
    x = CopyToRanks.apply(x)
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    total = linear(mixed.transpose(1, 2).flatten(2), out)
    dist.all_reduce(total.data)
    return total


# %% wrong: computes in float32 | wrong | says: element
def parallel_attention(x, query, key, value, out, head_size):
    x, given = CopyToRanks.apply(x).float(), x.dtype
    query, key, value, out = query.float(), key.float(), value.float(), out.float()
    q, k, v = (
        linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
    return SumOverRanks.apply(linear(mixed.transpose(1, 2).flatten(2), out)).to(given)
