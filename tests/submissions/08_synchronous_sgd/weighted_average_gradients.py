# %% right: each gradient times its share
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad *= samples / total.item()
        dist.all_reduce(p.grad)


# %% right: one tensor, the count at its end
def weighted_average_gradients(model, samples):
    ps = list(model.parameters())
    flat = [
        torch.zeros(p.numel(), dtype=p.dtype) if p.grad is None else p.grad.flatten() * samples
        for p in ps
    ]
    packed = torch.cat([*flat, torch.tensor([samples], dtype=ps[0].dtype)])
    dist.all_reduce(packed)
    mean, at = packed / packed[-1], 0
    for p in ps:
        p.grad = mean[at : at + p.numel()].reshape(p.shape).clone()
        at += p.numel()


# %% right: AVG of both, integers for the count, async
def weighted_average_gradients(model, samples):
    count = torch.tensor([samples], dtype=torch.int64)
    work = dist.all_reduce(count, async_op=True)
    for _, p in model.named_parameters():
        if p.grad is None:
            p.grad = p.detach() * 0
        else:
            p.grad.mul_(samples)
    work.wait()
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        p.grad.mul_(dist.get_world_size() / count.item())


# %% wrong: the total is taken anew for each parameter | wrong | says: add it up once
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        total = torch.tensor(samples)
        dist.all_reduce(total)
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad *= samples / total
        dist.all_reduce(p.grad)


# %% wrong: counts and gradients are gathered as objects | forbidden call | says: only all_reduce may be used
def weighted_average_gradients(model, samples):
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, samples)
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad *= samples / sum(counts)
        dist.all_reduce(p.grad)


# %% right: SUM of weighted copies, the number in float64 of shape (1,)
def weighted_average_gradients(model, samples):
    number = torch.full((1,), samples, dtype=torch.float64)
    dist.all_reduce(number)
    share = samples / number.item()
    with torch.no_grad():
        for p in model.parameters():
            part = p.grad * share if samples else torch.zeros_like(p)
            dist.all_reduce(part)
            p.grad = part


# %% wrong: gathers everybody's number | forbidden call | says: only all_reduce may be used
def weighted_average_gradients(model, samples):
    mine = torch.tensor(samples)
    all_of_them = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(all_of_them, mine)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples / sum(all_of_them)
        dist.all_reduce(g)
        p.grad = g
