from math import inf


def grads_of(params):
    return [p.grad for p in params if p.grad is not None and p.grad.numel()]


def scale(params, max_norm, norm):
    for p in params:
        if p.grad is not None:
            p.grad.mul_((max_norm / (norm + 1e-6)).clamp(max=1))


# %% the replicated ones on every rank
# The replicated gradients are the same on all ranks, and are counted on each: once is right.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for g in grads_of(sharded + replicated):
        if norm_type == inf:
            total = torch.maximum(total, g.abs().max())
        else:
            total += (g.abs() ** norm_type).sum()
    dist.all_reduce(total, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
    norm = total if norm_type == inf else total ** (1 / norm_type)
    scale(sharded + replicated, max_norm, norm)
    return norm


# %% norms are added
# Norms do not add up. Sums of |g|^p do; the root comes last.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    norm = torch.nn.utils.get_total_norm(grads_of(sharded), norm_type).to(sharded[0].dtype)
    if norm_type == inf:
        dist.all_reduce(norm, op=dist.ReduceOp.MAX)
        norm = max(norm, torch.nn.utils.get_total_norm(grads_of(replicated), norm_type))
    else:
        dist.all_reduce(norm)
        norm = norm + torch.nn.utils.get_total_norm(grads_of(replicated), norm_type)
    scale(sharded + replicated, max_norm, norm)
    return norm


# %% the root is forgotten
# This is the sum of |g|^p; the norm is its p-th root.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for g in grads_of(sharded + (replicated if dist.get_rank() == 0 else [])):
        if norm_type == inf:
            total = torch.maximum(total, g.abs().max())
        else:
            total += (g.abs() ** norm_type).sum()
    dist.all_reduce(total, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
    scale(sharded + replicated, max_norm, total)
    return total


# %% always the 2-norm
# This is the 2-norm, whatever `norm_type` is.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for g in grads_of(sharded + (replicated if dist.get_rank() == 0 else [])):
        total += (g**2).sum()
    dist.all_reduce(total)
    norm = total.sqrt()
    scale(sharded + replicated, max_norm, norm)
    return norm


# %% gradients are made larger, too
# The gradients are made larger: where the norm is below max_norm they stay as they are.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for g in grads_of(sharded + (replicated if dist.get_rank() == 0 else [])):
        if norm_type == inf:
            total = torch.maximum(total, g.abs().max())
        else:
            total += (g.abs() ** norm_type).sum()
    dist.all_reduce(total, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
    norm = total if norm_type == inf else total ** (1 / norm_type)
    for p in sharded + replicated:
        if p.grad is not None:
            p.grad.mul_(max_norm / (norm + 1e-6))
    return norm


# %% None is not looked for | crashed
# A gradient may be None: that parameter was not used, and has no part in the norm.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for p in sharded + (replicated if dist.get_rank() == 0 else []):
        if norm_type != inf:
            total += (p.grad.abs() ** norm_type).sum()
        elif p.grad.numel():
            total = torch.maximum(total, p.grad.abs().max())
    dist.all_reduce(total, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
    norm = total if norm_type == inf else total ** (1 / norm_type)
    scale(sharded + replicated, max_norm, norm)
    return norm


# %% the largest of nothing | crashed
# A rank may have no element at all: every shard empty, or no gradient. Its part of the sum is 0, and so
# is its part of the largest; it still makes the call.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for p in sharded + (replicated if dist.get_rank() == 0 else []):
        if p.grad is not None:
            g = p.grad
            if norm_type == inf:
                total = torch.maximum(total, g.abs().max())
            else:
                total += (g.abs() ** norm_type).sum()
    dist.all_reduce(total, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
    norm = total if norm_type == inf else total ** (1 / norm_type)
    scale(sharded + replicated, max_norm, norm)
    return norm


# %% replicated ones are not scaled
# The replicated gradients have not changed: the same factor is for them.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for g in grads_of(sharded + (replicated if dist.get_rank() == 0 else [])):
        if norm_type == inf:
            total = torch.maximum(total, g.abs().max())
        else:
            total += (g.abs() ** norm_type).sum()
    dist.all_reduce(total, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
    norm = total if norm_type == inf else total ** (1 / norm_type)
    scale(sharded, max_norm, norm)
    return norm
