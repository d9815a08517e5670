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


# %% not causal
# This attention is not causal: a token may attend to itself and to earlier tokens only.
def ulysses(q, k, v):
    q, k, v = (Swap.apply(x, 1, 2) for x in (q, k, v))
    return Swap.apply(scaled_dot_product_attention(q, k, v), 2, 1)


# %% nobody is asked
# This is attention to this rank's own keys only. Swap first, so that each rank has all tokens of some
# heads.
def ulysses(q, k, v):
    return scaled_dot_product_attention(q, k, v, is_causal=True)


# %% the graph is cut | crashed
# The output has no graph: is something detached, or computed under no_grad?
def ulysses(q, k, v):
    with torch.no_grad():
        q, k, v = (Swap.apply(x, 1, 2) for x in (q, k, v))
        return Swap.apply(scaled_dot_product_attention(q, k, v, is_causal=True), 2, 1)


# %% the swaps in the wrong order
# The swaps are in the wrong order: first split the heads (dimension 1) and join the tokens (dimension 2),
# after attention the other way round.
def ulysses(q, k, v):
    q, k, v = (Swap.apply(x, 2, 1) for x in (q, k, v))
    return Swap.apply(scaled_dot_product_attention(q, k, v, is_causal=True), 1, 2)


# %% not swapped back
# The output has some heads of all tokens, not all heads of this rank's tokens. Swap it back:
# Swap.apply(output, 2, 1).
def ulysses(q, k, v):
    q, k, v = (Swap.apply(x, 1, 2) for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v, is_causal=True)
