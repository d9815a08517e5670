from torch.nn.functional import scaled_dot_product_attention


class Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cut, join):
        ctx.dimensions = cut, join
        blocks = torch.stack(x.chunk(dist.get_world_size(), cut))
        box = torch.empty_like(blocks)
        dist.all_to_all_single(box, blocks)
        return torch.cat(box.unbind(), join)

    @staticmethod
    def backward(ctx, grad):
        cut, join = ctx.dimensions
        return Swap.apply(grad, join, cut), None, None


# %% right: four swaps
def ulysses(q, k, v):
    q, k, v = (Swap.apply(x, 1, 2) for x in (q, k, v))
    return Swap.apply(scaled_dot_product_attention(q, k, v, is_causal=True), 2, 1)


# %% right: the mask by hand
def ulysses(q, k, v):
    q, k, v = Swap.apply(q, 1, 2), Swap.apply(k, 1, 2), Swap.apply(v, 1, 2)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    at = torch.arange(q.shape[2])
    weights = scores.masked_fill(at[:, None] < at, -torch.inf).softmax(-1)
    return Swap.apply(weights @ v, 2, 1)


# %% right: all three in one swap
def ulysses(q, k, v):
    q, k, v = Swap.apply(torch.stack([q, k, v]), 2, 3)
    return Swap.apply(scaled_dot_product_attention(q, k, v, is_causal=True), 2, 1)


# %% wrong: the output is not swapped back | wrong | says: its shape is
def ulysses(q, k, v):
    q, k, v = (Swap.apply(x, 1, 2) for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v, is_causal=True)


# %% wrong: swapped back the same way | wrong | says: its shape is
def ulysses(q, k, v):
    q, k, v = (Swap.apply(x, 1, 2) for x in (q, k, v))
    return Swap.apply(scaled_dot_product_attention(q, k, v, is_causal=True), 1, 2)


# %% wrong: its own keys and values | wrong | says: its shape is
def ulysses(q, k, v):
    q = Swap.apply(q, 1, 2)
    return Swap.apply(scaled_dot_product_attention(q, k, v, is_causal=True), 2, 1)


# %% wrong: swapped there and back once too often | wrong | says: one for the output
def ulysses(q, k, v):
    q, k, v = (Swap.apply(x, 1, 2) for x in (q, k, v))
    v = Swap.apply(Swap.apply(v, 2, 1), 1, 2)
    return Swap.apply(scaled_dot_product_attention(q, k, v, is_causal=True), 2, 1)
