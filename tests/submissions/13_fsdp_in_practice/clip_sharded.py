from math import inf


def grads_of(params):
    return [p.grad for p in params if p.grad is not None and p.grad.numel()]


def scale(params, max_norm, norm):
    for p in params:
        if p.grad is not None:
            p.grad.mul_((max_norm / (norm + 1e-6)).clamp(max=1))


# %% right: powers, or the largest
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    both = []
    for params in (sharded, replicated):
        part = torch.zeros_like(total)
        for g in grads_of(params):
            if norm_type == inf:
                part = torch.maximum(part, g.abs().max())
            else:
                part += (g.abs() ** norm_type).sum()
        if params is sharded:
            dist.all_reduce(part, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
        both.append(part)
    norm = max(both) if norm_type == inf else (both[0] + both[1]) ** (1 / norm_type)
    scale([*sharded, *replicated], max_norm, norm)
    return norm


# %% right: norms of norms, the replicated ones counted on rank 0 only, in float64
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    mine = grads_of(sharded + (replicated if dist.get_rank() == 0 else []))
    norms = torch.tensor([torch.linalg.vector_norm(g, norm_type) for g in mine] or [0.0]).double()
    norms = torch.stack(
        [torch.linalg.vector_norm(g.double(), norm_type) for g in mine] or [norms[0]]
    )
    if norm_type == inf:
        norm = norms.max()
        dist.all_reduce(norm, op=dist.ReduceOp.MAX)
    else:
        total = (norms**norm_type).sum()
        dist.all_reduce(total)
        norm = total ** (1 / norm_type)
    factor = min(1.0, max_norm / (norm.item() + 1e-6))
    for p in sharded + replicated:
        if p.grad is not None:
            p.grad *= factor
    return norm


# %% right: replicated ones divided by the number of ranks, clip by torch
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=torch.float64)
    for params, share in ((sharded, 1), (replicated, dist.get_world_size())):
        for g in grads_of(params):
            if norm_type == inf:
                total = max(total, g.abs().max().double())
            else:
                total = total + g.double().abs().pow(norm_type).sum() / share
    if norm_type == inf:
        dist.all_reduce(total, dist.ReduceOp.MAX)
    else:
        dist.all_reduce(total)
        total = total.pow(1 / norm_type)
    torch.nn.utils.clip_grads_with_norm_(sharded + replicated, max_norm, total)
    return total


# %% wrong: one call for each gradient | wrong | says: Each rank sends one number|one number
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    powers = []
    for p in sharded:
        power = torch.zeros((), dtype=p.dtype)
        if p.grad is not None and p.grad.numel():
            power = p.grad.abs().max() if norm_type == inf else (p.grad.abs() ** norm_type).sum()
        dist.all_reduce(power, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
        powers.append(power)
    for g in grads_of(replicated):
        powers.append(g.abs().max() if norm_type == inf else (g.abs() ** norm_type).sum())
    norm = max(powers) if norm_type == inf else sum(powers) ** (1 / norm_type)
    scale(sharded + replicated, max_norm, norm)
    return norm


# %% wrong: gradients are gathered | forbidden call | says: only all_reduce may be used
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, grads_of(sharded))
    norm = torch.nn.utils.get_total_norm(sum(parts, []) + grads_of(replicated), norm_type)
    scale(sharded + replicated, max_norm, norm)
    return norm
