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
# This attention is not causal: a token may attend to itself and to earlier tokens only.
def ring_attention(q, k, v, positions):
    everything = torch.ones(len(positions), len(positions), dtype=torch.bool)
    out, lse = attend(q, k, v, everything)
    for _ in range(dist.get_world_size() - 1):
        k, v = PassOn.apply(k), PassOn.apply(v)
        out, lse = merge_parts(out, lse, *attend(q, k, v, everything))
    return out


# %% its own keys only
# This is attention to this rank's own keys only. Pass the keys and values of all ranks around.
def ring_attention(q, k, v, positions):
    return attend(q, k, v, positions[:, None] >= positions)[0]


# %% the positions stay at home
# The keys move, but their positions do not: pass them on, too, with `PassOn.apply(positions)`.
def ring_attention(q, k, v, positions):
    out, lse = attend(q, k, v, positions[:, None] >= positions)
    for _ in range(dist.get_world_size() - 1):
        k, v = PassOn.apply(k), PassOn.apply(v)
        out, lse = merge_parts(out, lse, *attend(q, k, v, positions[:, None] >= positions))
    return out


# %% what it cannot see is skipped | deadlocked
# A rank skips a block that none of its queries may see. backward sends a gradient back for each block that
# was used, so a rank that skips one leaves another waiting: every rank must use every block.
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
# The gradients of k and v do not come back to the rank that they belong to. Pass k and v on with
# `PassOn.apply`; does `check(PassOn)` pass?
def ring_attention(q, k, v, positions):
    own = positions
    out, lse = attend(q, k, v, own[:, None] >= positions)
    for _ in range(dist.get_world_size() - 1):
        k, v, positions = (shift(x.detach(), 1) for x in (k, v, positions))
        out, lse = merge_parts(out, lse, *attend(q, k, v, own[:, None] >= positions))
    return out


# %% > in place of >=
# A token does not attend to itself here. A query at position i sees the key at position i: use >=, not >.
def ring_attention(q, k, v, positions):
    own = positions
    out, lse = attend(q, k, v, own[:, None] > positions)
    for _ in range(dist.get_world_size() - 1):
        k, v, positions = PassOn.apply(k), PassOn.apply(v), PassOn.apply(positions)
        out, lse = merge_parts(out, lse, *attend(q, k, v, own[:, None] > positions))
    return out


# %% without its own block
# This rank's own keys are missing: attend to your own k and v first, then to the blocks that arrive.
def ring_attention(q, k, v, positions):
    own = positions
    part = None
    for _ in range(dist.get_world_size() - 1):
        k, v, positions = PassOn.apply(k), PassOn.apply(v), PassOn.apply(positions)
        one = attend(q, k, v, own[:, None] >= positions)
        part = one if part is None else merge_parts(*part, *one)
    return part[0]


# %% the mask is transposed
# The mask is transposed: its rows are queries and its columns keys, own[:, None] >= positions.
def ring_attention(q, k, v, positions):
    own = positions
    out, lse = attend(q, k, v, (own[:, None] >= positions).T)
    for _ in range(dist.get_world_size() - 1):
        k, v, positions = PassOn.apply(k), PassOn.apply(v), PassOn.apply(positions)
        out, lse = merge_parts(out, lse, *attend(q, k, v, (own[:, None] >= positions).T))
    return out


# %% only later keys
# A query sees the keys after it here, not those before it: use own[:, None] >= positions.
def ring_attention(q, k, v, positions):
    own = positions
    out, lse = attend(q, k, v, own[:, None] <= positions)
    for _ in range(dist.get_world_size() - 1):
        k, v, positions = PassOn.apply(k), PassOn.apply(v), PassOn.apply(positions)
        out, lse = merge_parts(out, lse, *attend(q, k, v, own[:, None] <= positions))
    return out


# %% positions guessed from the rank
# This assumes that each rank has consecutive positions, in the order of ranks. They may be in any order:
# use the `positions` that are given, and pass them on with the keys.
def ring_attention(q, k, v, positions):
    rank, p, n = dist.get_rank(), dist.get_world_size(), len(positions)
    own = torch.arange(n) + rank * n
    out, lse = attend(q, k, v, own[:, None] >= own)
    for step in range(1, p):
        k, v = PassOn.apply(k), PassOn.apply(v)
        theirs = torch.arange(n) + (rank - step) % p * n
        out, lse = merge_parts(out, lse, *attend(q, k, v, own[:, None] >= theirs))
    return out
