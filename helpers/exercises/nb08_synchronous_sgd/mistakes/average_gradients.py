# %% the classic programme, which skips what is None | deadlocked
# Some ranks have no gradient for some parameters. A rank that skips a call leaves the others waiting, or
# meets another parameter: hand in zeros instead, so that all ranks make the same calls.
def average_gradients(model):
    size = float(dist.get_world_size())
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
            p.grad /= size


# %% no None expected | crashed
# `p.grad` is None where a parameter is frozen, and where this rank's backward did not reach it.
def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM)
        p.grad.data /= dist.get_world_size()


# %% the sum
# This is the sum over the ranks: divide by the world size.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)


# %% divided twice
# It is divided by the world size once too often: ReduceOp.AVG divides already.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
            p.grad /= dist.get_world_size()


# %% divided by those who have one
# A rank without a gradient counts as zero: divide the sum by all {n} ranks, not by those that had one.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            has = torch.tensor(float(p.grad is not None))
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            dist.all_reduce(has)
            if has > 0:
                p.grad /= has


# %% zeros also for frozen parameters
# It is frozen: leave a parameter with requires_grad=False alone, there is nothing to average.
def average_gradients(model):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% the mean is not written back
# The mean must be written back into `p.grad`: work on it in place, or copy it there.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
            dist.all_reduce(g)
            g = g / dist.get_world_size()


# %% zeros handed in, but p.grad stays None
# The mean belongs to every rank: set `p.grad` also where backward left None.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            g = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(g)
            g /= dist.get_world_size()


# %% only rank 0 averages | deadlocked
# A collective waits for all ranks: every rank must make the same calls, in the same order.
def average_gradients(model):
    if dist.get_rank() == 0:
        for p in model.parameters():
            if p.requires_grad:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()


# %% averages through float32
# The numbers agree to about seven digits, as if they had passed through float32: keep the dtype of `p`.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            g = torch.zeros(p.shape) if p.grad is None else p.grad.float()
            dist.all_reduce(g)
            p.grad = (g / dist.get_world_size()).to(p.dtype)


# %% zeros are always float32 | crashed
# Tensors of different sizes met in one call. Does every rank go through the same parameters in the same
# order, with `torch.zeros_like(p)`, which has the parameter's shape and dtype, where it has nothing?
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                g = torch.zeros(p.shape)
                dist.all_reduce(g)
                p.grad = (g / dist.get_world_size()).to(p.dtype)
            else:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()


# %% a frozen parameter's old gradient is averaged too
# It is frozen: leave a parameter with requires_grad=False alone, there is nothing to average.
def average_gradients(model):
    for p in model.parameters():
        if p.grad is None and p.requires_grad:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% only rank 0 divides
# This is the sum over the ranks: divide by the world size.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            if dist.get_rank() == 0:
                p.grad /= dist.get_world_size()


# %% steps with the mean as well
# Nothing steps here: leave the mean in `p.grad`, whoever calls will step.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
            p.data -= 0.1 * p.grad
