from math import inf


def grads_of(params):
    return [p.grad for p in params if p.grad is not None and p.grad.numel()]


def scale(params, max_norm, norm):
    for p in params:
        if p.grad is not None:
            p.grad.mul_((max_norm / (norm + 1e-6)).clamp(max=1))


# %% the replicated ones on every rank
# The replicated gradients are the same on all ranks and are counted on each: count them once.
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
# Norms are added: add sums of |g|^p instead, and take the root last.
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
# This is the sum of |g|^p: the norm is its p-th root.
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
# Gradients whose norm is below max_norm are made larger: leave them as they are.
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
# A gradient may be None, if the parameter was not used: skip it.
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
# A rank may have no element at all, because every shard is empty or has no gradient. Its sum and its
# largest |g| are then 0, and the rank must still make the call.
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
# The replicated gradients are not scaled: scale them by the same factor.
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


# %% each rank by its own norm
# This is the norm of the rank's own gradients: add up the sums of all ranks.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    return torch.nn.utils.clip_grad_norm_([*sharded, *replicated], max_norm, norm_type)


# %% without the epsilon
# The factor is not exact: it is `max_norm / (norm + 1e-6)`.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for g in grads_of(sharded + (replicated if dist.get_rank() == 0 else [])):
        if norm_type == inf:
            total = torch.maximum(total, g.abs().max())
        else:
            total += (g.abs() ** norm_type).sum()
    dist.all_reduce(total, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
    norm = total if norm_type == inf else total ** (1 / norm_type)
    if norm > max_norm:
        for p in sharded + replicated:
            if p.grad is not None:
                p.grad.mul_(max_norm / norm)
    return norm


# %% powers of negative numbers
# |g| is not taken: for an odd `norm_type`, negative elements subtract from the sum.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for g in grads_of(sharded + (replicated if dist.get_rank() == 0 else [])):
        if norm_type == inf:
            total = torch.maximum(total, g.abs().max())
        else:
            total += (g**norm_type).sum()
    dist.all_reduce(total, op=dist.ReduceOp.MAX if norm_type == inf else dist.ReduceOp.SUM)
    norm = total if norm_type == inf else total ** (1 / norm_type)
    scale(sharded + replicated, max_norm, norm)
    return norm


# %% the largest are added up
# With `norm_type` inf, the ranks' largest are added up: reduce them with ReduceOp.MAX.
def clip_sharded(sharded, replicated, max_norm, norm_type=2.0):
    total = torch.zeros((), dtype=sharded[0].dtype)
    for g in grads_of(sharded + (replicated if dist.get_rank() == 0 else [])):
        if norm_type == inf:
            total = torch.maximum(total, g.abs().max())
        else:
            total += (g.abs() ** norm_type).sum()
    dist.all_reduce(total)
    norm = total if norm_type == inf else total ** (1 / norm_type)
    scale(sharded + replicated, max_norm, norm)
    return norm
