def shift(x, by):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    x = x.contiguous()
    box = torch.empty_like(x)
    there, here = (rank + by) % world_size, (rank - by) % world_size
    pair = [dist.P2POp(dist.isend, x, there), dist.P2POp(dist.irecv, box, here)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    return box


def attend(q, k, v, visible):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~visible, -1e30)
    lse = scores.logsumexp(dim=-1, keepdim=True)
    return (scores - lse).exp() @ v, lse


def merge_parts(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(), lse


class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, -1)


# %% not causal
# A token may look at itself and at those before it, not at those behind.
def ring_attention(q, k, v, positions):
    everything = torch.ones(len(positions), len(positions), dtype=torch.bool)
    out, lse = attend(q, k, v, everything)
    for _ in range(dist.get_world_size() - 1):
        k, v = PassOn.apply(k), PassOn.apply(v)
        out, lse = merge_parts(out, lse, *attend(q, k, v, everything))
    return out


# %% its own keys only
# This is the attention to this rank's own keys. The keys and values of all ranks must come by.
def ring_attention(q, k, v, positions):
    return attend(q, k, v, positions[:, None] >= positions)[0]


# %% the positions stay at home
# The positions travel with their keys: `PassOn.apply(positions)`.
def ring_attention(q, k, v, positions):
    out, lse = attend(q, k, v, positions[:, None] >= positions)
    for _ in range(dist.get_world_size() - 1):
        k, v = PassOn.apply(k), PassOn.apply(v)
        out, lse = merge_parts(out, lse, *attend(q, k, v, positions[:, None] >= positions))
    return out


# %% what it cannot see is skipped | deadlocked
# Every rank must pass on the same number of blocks, and use each of them: backward sends a gradient back
# for each block that was used, and a rank that skips one leaves another waiting.
def ring_attention(q, k, v, positions):
    own = positions
    out, lse = attend(q, k, v, own[:, None] >= positions)
    for _ in range(dist.get_world_size() - 1):
        k, v, positions = (PassOn.apply(x) for x in (k, v, positions))
        visible = own[:, None] >= positions
        if visible.any():
            out, lse = merge_parts(out, lse, *attend(q, k, v, visible))
    return out


# %% autograd does not hear of the ring
# The gradients of k and v come back to the rank that they belong to: do they go around by PassOn, and
# does `check(PassOn)` pass?
def ring_attention(q, k, v, positions):
    own = positions
    out, lse = attend(q, k, v, own[:, None] >= positions)
    for _ in range(dist.get_world_size() - 1):
        k, v, positions = (shift(x.detach(), 1) for x in (k, v, positions))
        out, lse = merge_parts(out, lse, *attend(q, k, v, own[:, None] >= positions))
    return out
