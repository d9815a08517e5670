# %% wrong: divided by those who have one | wrong | says: divide the sum by all \d ranks


# %% wrong: zeros also for frozen parameters | wrong | says: It is frozen: leave a parameter


# %% right: sums in float64, names in sorted order, the copy written back
def average_gradients(model):
    for _, p in sorted(model.named_parameters()):
        if p.requires_grad:
            wide = torch.zeros(p.shape, dtype=p.dtype) if p.grad is None else p.grad.detach().clone()
            dist.all_reduce(wide)
            mean = (wide.double() / dist.get_world_size()).to(p.dtype)
            p.grad = mean if p.grad is None else p.grad.copy_(mean)


# %% right: a gradient that nobody has stays None, as DDP leaves it
def average_gradients(model):
    for p in model.parameters():
        if not p.requires_grad:
            continue
        mine = p.grad
        g = torch.zeros_like(p) if mine is None else mine / dist.get_world_size()
        dist.all_reduce(g)
        there = torch.tensor(int(mine is not None))
        dist.all_reduce(there, op=dist.ReduceOp.MAX)
        p.grad = g if there else None


# %% wrong: averages through float32 | wrong | says: agree to about seven digits
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            g = torch.zeros(p.shape) if p.grad is None else p.grad.float()
            dist.all_reduce(g)
            p.grad = (g / dist.get_world_size()).to(p.dtype)


# %% wrong: zeros are always float32 | crashed | says: zeros_like
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


# %% wrong: a frozen parameter's old gradient is averaged too | crashed | says: frozen
def average_gradients(model):
    for p in model.parameters():
        if p.grad is None and p.requires_grad:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% wrong: only rank 0 divides | wrong | says: This is the sum over the ranks
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            if dist.get_rank() == 0:
                p.grad /= dist.get_world_size()


# %% wrong: the largest instead of the mean | wrong | says: rank 1: \w+: 
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad, op=dist.ReduceOp.MAX)


# %% wrong: steps with the mean as well | wrong | says: whoever calls will step
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
            p.data -= 0.1 * p.grad
