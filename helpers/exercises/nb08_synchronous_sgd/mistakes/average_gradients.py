# %% the classic program, which skips what is None | deadlocked
# Some ranks have no gradient for some parameters. If a rank skips its call there, the others wait for it,
# or its next call is paired with another parameter's. Send zeros instead, so that all ranks make the same
# calls.
def average_gradients(model):
    size = float(dist.get_world_size())
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
            p.grad /= size


# %% no None expected | crashed
# `p.grad` is None for a frozen parameter, and for one that this rank's backward did not reach.
def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM)
        p.grad.data /= dist.get_world_size()


# %% the sum
# This is the sum of the ranks' gradients: divide it by the world size.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)


# %% divided twice
# The sum of the gradients is divided by the world size twice. (ReduceOp.AVG already divides.)
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
            p.grad /= dist.get_world_size()


# %% divided by those who have one
# The sum is divided by the number of ranks that have a gradient. A rank without one counts as zero: divide
# by the world size, {n}.
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
# Leave a parameter with requires_grad=False alone: it is not trained, and its `p.grad` stays as is.
def average_gradients(model):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% the mean is not written back
# `p.grad` does not hold the mean: reduce it in place, or write the result back to `p.grad`.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
            dist.all_reduce(g)
            g = g / dist.get_world_size()


# %% zeros handed in, but p.grad stays None
# Where backward left None, `p.grad` is still None: set it to the mean there, too.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            g = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(g)
            g /= dist.get_world_size()


# %% only rank 0 averages | deadlocked
# A collective call waits for all ranks: every rank must make the same calls in the same order.
def average_gradients(model):
    if dist.get_rank() == 0:
        for p in model.parameters():
            if p.requires_grad:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()


# %% averages through float32
# The result is exact to only about seven digits, which is float32's precision: keep the dtype of `p`.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            g = torch.zeros(p.shape) if p.grad is None else p.grad.float()
            dist.all_reduce(g)
            p.grad = (g / dist.get_world_size()).to(p.dtype)


# %% zeros are always float32 | crashed
# Tensors of different sizes or dtypes met in one call. Go through the same parameters in the same order on
# every rank, and send `torch.zeros_like(p)`, which has the parameter's shape and dtype, where a rank has no
# gradient.
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
# Leave a parameter with requires_grad=False alone: it is not trained, and its `p.grad` stays as is.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad or p.grad is not None:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


# %% only rank 0 divides
# Only rank 0 has the mean; the other ranks have the sum. Every rank must divide by the world size.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            if dist.get_rank() == 0:
                p.grad /= dist.get_world_size()


# %% steps with the mean as well
# This changes the weights: only leave the mean in `p.grad`; the caller steps.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
            p.data -= 0.1 * p.grad


# %% rank 0's for everybody
# Every rank has rank 0's gradient: sum the gradients of all ranks and divide by the world size.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.broadcast(p.grad, src=0)


# %% the largest instead of the mean
# This is the largest of the ranks' gradients, element by element: ReduceOp.SUM adds, then divide.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad, op=dist.ReduceOp.MAX)


# %% averages the weights
# The weights are averaged: average the gradients, `p.grad`, and leave `p` as it is.
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            dist.all_reduce(p.data)
            p.data /= dist.get_world_size()
